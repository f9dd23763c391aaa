// Neighbouring experts apart: breaks up hot blocks without knowing any load.
#include "workload/placement.h"

namespace epsweep {
namespace {

std::vector<int> expert_of_slot(const PlacementContext& context) {
  std::vector<int> experts;
  for (int rank = 0; rank < context.ep_size; ++rank) {
    for (int expert = rank; expert < context.num_experts; expert += context.ep_size) {
      experts.push_back(expert);
    }
  }
  return experts;
}

const bool registered =
    PlacementCatalog::instance().add({"round_robin", "expert e on rank e mod ep_size",
                                      SlotRule::one_per_expert, FittedTo::nothing, expert_of_slot});

}  // namespace
}  // namespace epsweep
