#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const int rank = facts.summary.stages[static_cast<std::size_t>(Stage::expert_ffn)].slowest_rank;
  if (!facts.slowest_rank_ffn.has_value()) return std::nullopt;
  const double flops =
      static_cast<double>(facts.slowest_rank_ffn->flops) / facts.point.num_routings();
  return rate(flops / 1e9, facts.summary.ffn_p50_s_of_rank[static_cast<std::size_t>(rank)]);
}

const bool registered = MetricCatalog::instance().add(
    {"ffn_gflop_per_s_of_slowest_rank", "GFLOP/s", Better::higher,
     "routed FLOPs per layer of the rank that is slowest in expert_ffn most often / "
     "its own expert_ffn p50 / 1e9: the kernel's rate without the imbalance",
     compute});

}  // namespace
}  // namespace epsweep
