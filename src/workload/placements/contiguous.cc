// Neighbouring experts together: what most serving systems do by default.
#include "plan/sweep_point.h"
#include "workload/placement.h"

namespace epsweep {
namespace {

std::vector<int> rank_of_expert(int num_experts, int ep_size) {
  std::vector<int> ranks;
  const std::vector<std::int64_t> sizes = near_equal_split(num_experts, ep_size);
  for (int rank = 0; rank < ep_size; ++rank) {
    ranks.insert(ranks.end(), static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)]),
                 rank);
  }
  return ranks;
}

const bool registered = PlacementCatalog::instance().add(
    {"contiguous", "blocks of neighbouring experts, larger blocks first", rank_of_expert});

}  // namespace
}  // namespace epsweep
