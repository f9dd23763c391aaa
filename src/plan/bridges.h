// Points that nobody asked for but that explain those that were.
#pragma once

#include <string>
#include <vector>

#include "plan/sweep_point.h"
#include "plan/sweep_spec.h"

namespace epsweep {

// Of an EP size: the loads at which it is measured beside the asked ones, so that a wider EP and a
// higher concurrency can be told apart. For fixed_per_rank loads t and any other size P' of the
// sweep that is C = t * P', where no load of the experiment has that C already. As fixed_global
// loads, ascending; none with `explain: none`.
std::vector<Concurrency> bridge_loads(const SweepSpec& spec, int ep_size);

// Of `explain: deep`: the point with balanced routing in place of its trace, and with contiguous
// experts in place of its placement, where the experiment has neither; made from the points of its
// first routing and placement.
std::vector<SweepPoint> counterfactuals(const SweepSpec& spec, const SweepPoint& point);

}  // namespace epsweep
