// A comparison as people read it, and as programs do.
#pragma once

#include <optional>
#include <string>

#include "report/compare.h"

namespace epsweep {

// What is compared in spite of what, one row for every pair of points, regressions and improvements
// both, and what has no partner.
std::string compare_text(const Comparison& comparison, const std::optional<RegressionCheck>& check);

// All of it, with the values of every repeat.
Json compare_json(const Comparison& comparison, const std::optional<RegressionCheck>& check);

}  // namespace epsweep
