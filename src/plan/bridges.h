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

// Of `explain: deep`: the point with balanced routing in place of its trace, with contiguous
// experts in place of its placement, and with a local copy of the same rows in place of its
// exchange (base/local_copy.h), each where the experiment has none of its own; made from the points
// of its first routing, its first placement, and the first of both and the first transport. A local
// copy has exact row counts, which no graph can wait for: there is none of points launched as one.
std::vector<SweepPoint> counterfactuals(const SweepSpec& spec, const SweepPoint& point);

}  // namespace epsweep
