#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const auto tokens = static_cast<double>(facts.num_groups * facts.point.tokens_global());
  return rate(tokens, facts.summary.period_p50_s());
}

const bool registered = MetricCatalog::instance().add(
    {"tokens_per_s", "tokens/s", Better::higher,
     "num_groups * tokens_global / layer p50: tokens through one MoE layer, all "
     "groups that run",
     compute});

}  // namespace
}  // namespace epsweep
