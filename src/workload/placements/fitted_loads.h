// What the placements share that are fitted to loads.
#pragma once

#include <span>
#include <vector>

#include "workload/placement.h"

namespace epsweep {

// Rows per expert as loads: [num_experts]. Where nothing is known, or nobody has rows, all experts
// count the same, so that replicas are spread over them.
std::vector<double> fitted_loads(const PlacementContext& context);

// Whether no expert needs to move: without replicas, blocks of experts in order load all ranks the
// same.
bool needs_no_moves(std::span<const double> loads, const PlacementContext& context);

// Every expert in its own slot.
std::vector<int> unmoved_experts(int num_experts);

// The global policy, replicas of an expert apart; unmoved experts where nothing needs to move.
std::vector<int> global_eplb(std::span<const double> loads, const PlacementContext& context);

}  // namespace epsweep
