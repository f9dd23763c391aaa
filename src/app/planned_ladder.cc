#include "app/planned_ladder.h"

#include "app/experiment.h"

namespace epsweep {

PlannedPoint PlannedLadder::next(const SweepPoint& point) {
  if (const auto stop = stops_.below(point); stop && !reason_not_to_plan(point)) {
    PlannedPoint beyond;
    beyond.reason = stop->beyond();
    beyond.stop = stop;
    return beyond;
  }
  PlannedPoint planned = plan_point(point, limits_, caches_);
  if (!planned.reason.empty()) return planned;
  planned.stop = kv_stop(point);
  if (!planned.stop && !planned.shortfall.empty()) {
    planned.stop = LadderStop{.kind = StopKind::device_memory,
                              .at_tokens = point.tokens_global(),
                              .reason = planned.shortfall};
  }
  if (planned.stop) stops_.add(point, *planned.stop);
  return planned;
}

}  // namespace epsweep
