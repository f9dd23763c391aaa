#include "workload/placements/fitted_loads.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "workload/eplb.h"

namespace epsweep {

std::vector<double> fitted_loads(const PlacementContext& context) {
  std::vector<double> loads(context.rows_per_expert.begin(), context.rows_per_expert.end());
  if (std::ranges::all_of(loads, [](double load) { return load == 0; })) {
    loads.assign(static_cast<std::size_t>(context.num_experts), 1.0);
  }
  return loads;
}

bool needs_no_moves(std::span<const double> loads, const PlacementContext& context) {
  if (context.redundant_slots > 0) return false;
  const std::size_t block = loads.size() / static_cast<std::size_t>(context.ep_size);
  const auto sum = [&](std::size_t at) {
    const auto own = loads.subspan(at, block);
    return std::accumulate(own.begin(), own.end(), 0.0);
  };
  for (std::size_t at = block; at < loads.size(); at += block) {
    if (sum(at) != sum(0)) return false;
  }
  return true;
}

std::vector<int> unmoved_experts(int num_experts) {
  std::vector<int> experts(static_cast<std::size_t>(num_experts));
  std::iota(experts.begin(), experts.end(), 0);
  return experts;
}

std::vector<int> global_eplb(std::span<const double> loads, const PlacementContext& context) {
  if (needs_no_moves(loads, context)) return unmoved_experts(context.num_experts);
  return eplb_slots(loads, context.num_slots(), context.ep_size, Colocation::avoided);
}

}  // namespace epsweep
