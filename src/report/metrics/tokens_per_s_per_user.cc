#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  return rate(1, facts.tpot_s());
}

const bool registered = MetricCatalog::instance().add(
    {"tokens_per_s_per_user", "tokens/s", Better::higher,
     "1 / tpot: of a sequence that gets one token of each step; null without limits", compute});

}  // namespace
}  // namespace epsweep
