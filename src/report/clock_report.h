// How well the clocks of a point's ranks were aligned, as a record shows it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace epsweep {

struct ClockReport {
  int domains = 1;                      // clocks that the ranks in groups read
  std::vector<double> bound_s_of_rank;  // of marks on the common axis; by rank in a group
  // Of the clock that drifts fastest against rank 0's; positive: it loses time. Absent where all
  // ranks read rank 0's.
  std::optional<double> worst_drift_ppm, worst_drift_bound_ppm;
};

// Null for a point without one.
Json clock_report_json(const std::optional<ClockReport>& report);
std::string clock_report_formula();

}  // namespace epsweep
