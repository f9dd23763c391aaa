// Hot experts replicated, and slots packed so that ranks carry equal loads.
#include "workload/eplb.h"

#include "workload/placements/fitted_loads.h"

namespace epsweep {
namespace {

std::vector<int> expert_of_slot(const PlacementContext& context) {
  return global_eplb(fitted_loads(context), context);
}

const bool registered = PlacementCatalog::instance().add(
    {"eplb", "replicas for the most loaded experts, slots packed greedily; takes redundant_slots",
     SlotRule::equal_per_rank, FittedTo::rows, expert_of_slot});

}  // namespace
}  // namespace epsweep
