// The traces that a placement is fitted to and judged on. The rule for fitted ones: what a
// placement has not seen is what it will meet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/sweep_point.h"
#include "workload/trace_cache.h"

namespace epsweep {

// The point whose own trace the placement is fitted to, or judged on: `point` with what fit_on or
// judge_on changes.
SweepPoint fitted_point(const SweepPoint& point);
SweepPoint judged_point(const SweepPoint& point);

bool is_fitted(const SweepPoint& point);

// Rows per expert that the point's placement is fitted to in one layer: [num_experts]; empty where
// it looks at none. The only source of them, for plans and for ranks, so that all place alike.
std::vector<std::int64_t> rows_to_fit(const SweepPoint& point, int layer, TraceCache& traces);

// "own trace (in-sample)", "step 1 of the same routing, 65536 tokens", or another routing's label;
// of a placement from a file its name; absent if it looks at no rows.
std::optional<std::string> placement_fitted_on(const SweepPoint& point);
// The same for the trace it is judged on; "own trace" where that is what `run` measures.
std::string placement_judged_on(const SweepPoint& point);

// The recording that both traces are drawn from; empty where there is none.
std::string shared_recording(const SweepPoint& point);

}  // namespace epsweep
