// What the ranks of a run can do at best, for the head of a report.
#pragma once

#include <string>

#include "base/json.h"

namespace epsweep {

// From run.json; empty where it has no ceilings.
std::string ceiling_text(const Json& run);

}  // namespace epsweep
