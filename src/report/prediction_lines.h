// What ceilings predicted beside what was measured, as a report shows it.
#pragma once

#include <string>
#include <vector>

#include "report/table_columns.h"

namespace epsweep {

// One row for each point with a prediction; empty without any.
std::string prediction_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying);

}  // namespace epsweep
