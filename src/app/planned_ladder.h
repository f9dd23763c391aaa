// The points of a plan in their order, with the stops of their ladders.
#pragma once

#include "app/planned_point.h"
#include "plan/ladder.h"

namespace epsweep {

// Takes the points of one plan in order. A load above a stop of its series is not looked at: its
// `reason` says so, and no routing is drawn for it.
class PlannedLadder {
 public:
  explicit PlannedLadder(const LaunchLimits& limits) : limits_(limits) {}
  PlannedPoint next(const SweepPoint& point);

 private:
  LaunchLimits limits_;
  PlanCaches caches_;
  LadderStops stops_;
};

}  // namespace epsweep
