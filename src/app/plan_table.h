// A whole plan as tables or as JSON.
#pragma once

#include <string>

#include "app/planned_point.h"
#include "base/json.h"

namespace epsweep {

std::string plan_table(const SweepSpec& spec, const Plan& plan, const LaunchLimits& limits);
Json plan_json(const SweepSpec& spec, const Plan& plan, const LaunchLimits& limits);

}  // namespace epsweep
