#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const double bytes = static_cast<double>(facts.ffn.weight_bytes) / facts.point.num_routings();
  return rate(bytes / facts.point.ep_size / 1e9, facts.slowest_s(Stage::expert_ffn).p50);
}

const bool registered = MetricCatalog::instance().add(
    {"ffn_weight_gb_per_s_per_rank", "GB/s", Better::higher,
     "weight bytes of the experts with at least one row, of a group per layer / "
     "(ep_size * slowest rank's expert_ffn p50) / 1e9",
     compute});

}  // namespace
}  // namespace epsweep
