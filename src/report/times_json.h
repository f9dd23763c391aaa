// The times of a point as its record shows them, every one with its regime.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/summary.h"

namespace epsweep {

// "aligned": ranks start every stage together. "chained": layers follow one another.
inline constexpr const char* kAligned = "aligned";
inline constexpr const char* kChained = "chained";

Json us_vector_json(const std::vector<double>& seconds);
// `world_ranks`: of the rows of the tables.
Json stages_json(const PointSummary& times, const std::vector<int>& world_ranks);
// The sum of the stages of a layer.
Json all_stages_json(const PointSummary& times, const std::vector<int>& world_ranks);
// A layer among others; null where only stages were timed.
Json layer_json(const PointSummary& times, const std::vector<int>& world_ranks);
// Chained minus aligned; null without both.
Json entry_skew_json(const PointSummary& times);
std::vector<std::string> time_warnings(const PointSummary& times);
Json times_formulas();

}  // namespace epsweep
