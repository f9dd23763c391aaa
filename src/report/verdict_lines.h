// What repeats say about EP sizes at one load.
#pragma once

#include <string>
#include <vector>

#include "report/table_columns.h"

namespace epsweep {

// One line for every EP size but the smallest, against that one, where points differ in EP size and
// repeat only and any was repeated; empty if there are none. `varying`: the axes rows differ in.
std::string verdict_text(const std::vector<TableRow>& measured, const std::vector<Axis>& varying);

}  // namespace epsweep
