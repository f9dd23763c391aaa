// What ceilings predicted beside what was measured, as a report shows it.
#pragma once

#include <string>
#include <vector>

#include "report/table_columns.h"

namespace epsweep {

// One row for each point with a prediction; empty without any.
std::string prediction_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying);

// The intervals of predicted points and how far they are from what was calibrated; empty without
// any.
std::string interval_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying);

// What the mark P means; empty where no row has it.
std::string predicted_mark_text(const std::vector<TableRow>& rows);

}  // namespace epsweep
