// The roofline of a point as records show it.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "costs/roofline.h"

namespace epsweep {

// Null where there is none.
Json roofline_json(const std::optional<FfnRoofline>& roofline);
std::string roofline_formula();

}  // namespace epsweep
