// What the experts of each rank would have to do if routing were uniform: the unevenness that is
// chance alone.
#pragma once

#include <vector>

#include "costs/ffn_work.h"
#include "plan/sweep_point.h"
#include "workload/placement.h"

namespace epsweep {

// [draws][ep_size]: of draws of uniform routing with the point's tokens under its placement; more
// draws of fewer tokens, about 65,536 tokens in all and 8 draws at most. They share no random
// values with the point's own trace. Empty for no tokens.
std::vector<std::vector<FfnWork>> uniform_ffn(const SweepPoint& point, const Placement& placement);

// Of each rank's slots: [ep_size].
std::vector<FfnWork> ffn_work_of_ranks(const SweepPoint& point, const Placement& placement,
                                       const std::vector<std::int64_t>& rows_per_slot);

}  // namespace epsweep
