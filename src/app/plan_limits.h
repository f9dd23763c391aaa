// What `limits` will do to a plan, for those who read it before it runs.
#pragma once

#include <string>

#include "plan/sweep_spec.h"

namespace epsweep {

// The most loads that a series of these ladders may get beyond them, second attempts not counted:
// those between two neighbours that are furthest apart. 0 without limits.
int most_added_loads(const SweepSpec& spec);

// One paragraph; empty without limits.
std::string limits_text(const SweepSpec& spec);

}  // namespace epsweep
