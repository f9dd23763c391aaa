// One point after the other: its stages, its ranks.
#pragma once

#include <string>
#include <vector>

#include "report/result_file.h"

namespace epsweep {

struct PointTables {
  bool stages = false;
  std::string ranks;  // "few", "all", or empty for none
};

// Of all measured points, in the order they were run. Tables of ranks read the runs' arrays of
// times: ConfigError where these are missing, damaged or of other ranks.
std::string point_tables(const std::vector<RunData>& runs, const PointTables& tables);

}  // namespace epsweep
