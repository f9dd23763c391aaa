#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  return rate(facts.slowest_s(Stage::expert_ffn).p50.value_or(0),
              facts.summary.all_stages.slowest_s.p50);
}

const bool registered = MetricCatalog::instance().add(
    {"ffn_share", "1", Better::neither, "slowest rank's expert_ffn p50 / all_stages p50, both aligned", compute});

}  // namespace
}  // namespace epsweep
