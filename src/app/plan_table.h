// A plan with what routing and placement make of it, before anything runs.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "plan/plan.h"

namespace epsweep {

// What a plan is compared with; 0 where it was not said.
struct LaunchLimits {
  int world_size = 0;
  std::int64_t memory_bytes = 0;  // of a rank
};

std::string plan_table(const SweepSpec& spec, const Plan& plan, const LaunchLimits& limits);
Json plan_json(const SweepSpec& spec, const Plan& plan, const LaunchLimits& limits);

}  // namespace epsweep
