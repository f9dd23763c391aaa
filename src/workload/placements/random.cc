// Any shuffle: what part of a placement's gain needs no knowledge of loads.
#include "base/random.h"

#include <numeric>
#include <utility>

#include "workload/placement.h"

namespace epsweep {
namespace {

// Fisher-Yates; another permutation in every layer.
std::vector<int> expert_of_slot(const PlacementContext& context) {
  const RandomStream stream(context.seed, Stream::placement,
                            static_cast<std::uint64_t>(context.layer));
  std::vector<int> experts(static_cast<std::size_t>(context.num_experts));
  std::iota(experts.begin(), experts.end(), 0);
  for (std::size_t left = experts.size(); left > 1; --left) {
    std::swap(experts[left - 1], experts[stream.below(left, left)]);
  }
  return experts;
}

const bool registered = PlacementCatalog::instance().add(
    {"random", "a permutation of the experts by seed and layer, dealt in blocks",
     SlotRule::one_per_expert, FittedTo::nothing, expert_of_slot});

}  // namespace
}  // namespace epsweep
