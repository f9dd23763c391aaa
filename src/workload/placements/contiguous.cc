// Neighbouring experts together: what most serving systems do by default.
#include <numeric>

#include "workload/placement.h"

namespace epsweep {
namespace {

std::vector<int> expert_of_slot(const PlacementContext& context) {
  std::vector<int> experts(static_cast<std::size_t>(context.num_experts));
  std::iota(experts.begin(), experts.end(), 0);
  return experts;
}

const bool registered = PlacementCatalog::instance().add(
    {"contiguous", "blocks of neighbouring experts, larger blocks first", SlotRule::one_per_expert,
     FittedTo::nothing, expert_of_slot});

}  // namespace
}  // namespace epsweep
