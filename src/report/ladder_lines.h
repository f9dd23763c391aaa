// Where each series of a report's group was stopped, one line each.
#pragma once

#include <string>
#include <vector>

#include "report/table_columns.h"

namespace epsweep {

// "EP8 pairwise onednn: stopped at 2048 tokens by kv_memory: ...", or "reached the end of the
// ladder at 4096 tokens", for every series: rows that differ in their load alone. `varying` axes
// tell them apart. Empty where no limit but this machine's memory was given and no series was
// stopped.
std::string ladder_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying);

}  // namespace epsweep
