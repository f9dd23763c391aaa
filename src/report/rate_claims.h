// What a point would have achieved, beside what limits it.
#pragma once

#include <vector>

#include "costs/rate_limits.h"
#include "report/point_record.h"

namespace epsweep {

// Of a measured point, every rank's expert_ffn at its own p50 (FLOPs of routed rows, weight bytes
// of the experts with rows, per layer) and the group's remote bytes per rank in dispatch and
// combine at the slowest rank's p50. Limits: the ceilings that ranks of one device measured
// together, and the peaks that the experiment's hardware declares. Bytes say nothing of memory
// where weights may be in a cache: with weight_cache warm, and, of measured limits, where the
// ceiling is a cache's. Exchanges have no measured limit: alpha and beta are a fit, not a bound.
std::vector<RateClaim> rate_claims(const PointRecordInput& input);

}  // namespace epsweep
