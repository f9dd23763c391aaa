#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const double flops = static_cast<double>(facts.ffn.flops) / facts.point.num_routings();
  return rate(flops / facts.point.ep_size / 1e9, facts.slowest_s(Stage::expert_ffn).p50);
}

const bool registered = MetricCatalog::instance().add(
    {"ffn_gflop_per_s_per_rank", "GFLOP/s", Better::higher,
     "routed FLOPs of a group per layer / (ep_size * slowest rank's expert_ffn p50) "
     "/ 1e9; FLOPs = 2 * routed rows * parameters of an expert, padding not counted",
     compute});

}  // namespace
}  // namespace epsweep
