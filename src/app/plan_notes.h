// What the routings of a plan say about themselves: each once, however many points use it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"
#include "workload/routing_note.h"

namespace epsweep {

struct PlanNote {
  std::string routing;  // its label
  RoutingNote note;
};

// Of the points that can run. Throws ConfigError where a recording cannot be read.
std::vector<PlanNote> plan_notes(const Plan& plan);
std::string plan_notes_text(const std::vector<PlanNote>& notes);
Json plan_notes_json(const std::vector<PlanNote>& notes);
// Those that are warnings, to the log.
void warn_of(const std::vector<PlanNote>& notes);
// Of one point.
std::vector<std::string> routing_warnings(const SweepPoint& point);

}  // namespace epsweep
