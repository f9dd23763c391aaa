#include "app/planned_ladder.h"

#include "app/experiment.h"
#include "app/sweep_walk.h"

namespace epsweep {

PlannedPoint PlannedLadder::next(const SweepPoint& point) {
  const auto refusal = refusal_of(point, reason_not_to_plan(point).value_or(""), stops_);
  const bool is_beyond = refusal && refusal->stop && !end_of(point, *refusal).met;
  if (is_beyond) {
    PlannedPoint beyond;
    beyond.reason = refusal->reason;
    beyond.stop = refusal->stop;
    return beyond;
  }
  PlannedPoint planned = plan_point(point, limits_, caches_);
  if (!planned.reason.empty()) return planned;
  if (refusal) {
    planned.stop = refusal->stop;
  } else if (!planned.shortfall.empty()) {
    planned.stop = memory_refusal(point, planned.shortfall).stop;
  }
  if (planned.stop) stops_.add(point, *planned.stop);
  return planned;
}

}  // namespace epsweep
