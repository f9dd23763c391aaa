// A plan with what routing and placement make of it, before anything runs.
#pragma once

#include <map>
#include <string>

#include "base/json.h"
#include "plan/plan.h"

namespace epsweep {

// world_size 0: not said, so nothing is compared with it.
std::string plan_table(const SweepSpec& spec, const Plan& plan, int world_size);
Json plan_json(const SweepSpec& spec, const Plan& plan, int world_size);

}  // namespace epsweep
