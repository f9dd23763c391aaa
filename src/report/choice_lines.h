// Which kernels were taken by one that picks among others, and what it measured.
#pragma once

#include <string>
#include <vector>

#include "report/table_columns.h"

namespace epsweep {

// Two lines for every grouped GEMM of a row that has choices: how often which kernel was taken over
// layers and ranks, and from where to where each candidate's time went. `varying` axes tell rows
// apart. Empty where no kernel picked.
std::string choice_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying);

}  // namespace epsweep
