// One point of a plan with what routing and placement make of it, before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "costs/expected_copies.h"
#include "costs/point_workload.h"
#include "costs/serving_memory.h"
#include "plan/ladder.h"
#include "plan/plan.h"
#include "workload/token_sample.h"
#include "workload/trace_cache.h"

namespace epsweep {

// What a plan is compared with; 0 where it was not said.
struct LaunchLimits {
  int world_size = 0;
  std::int64_t memory_bytes = 0;  // of a rank; then that of the hardware counts, if it is known
};

struct PlannedPoint {
  std::string reason;  // why it cannot run; the rest is empty then
  std::vector<std::int64_t> tokens_per_rank;
  PointWorkload work;
  RowSummary expert_rows, rank_rows;              // over all layers
  double active_experts = 0;                      // distinct experts with rows, mean over layers
  std::optional<double> expected_active_experts;  // of uniform routing
  std::optional<ExpectedCopies> expected;         // absent where nothing can be expected
  int num_groups = 0, num_idle = 0;               // of a world whose size was given
  std::string shortfall;          // against a memory that was given; empty if it fits
  std::int64_t memory_bytes = 0;  // that memory; 0 where none was given
  std::optional<ServingMemory> serving;
  std::optional<LadderStop> stop;  // of its series, at this load or a lower one
};

// Why it does not run, whatever kind of reason; empty if it does.
std::string why_not(const PlannedPoint& planned);

// What the points of a plan share.
struct PlanCaches {
  TraceCache traces;
  SampleCache samples;
};

PlannedPoint plan_point(const SweepPoint& point, const LaunchLimits& limits, PlanCaches& caches);

}  // namespace epsweep
