// What a point is to be judged against: the ungrouped kernel, and the best way to run it.
#pragma once

#include <string>
#include <vector>

#include "report/table_columns.h"

namespace epsweep {

// Kernels that run one product per expert, by their names: `loop`, `cublaslt_loop`, ...
bool is_ungrouped_kernel(const std::string& name);

// Where points ran with several kernels: expert_ffn of each beside that of the ungrouped one, and
// the best one at each number of rows per expert. Where they ran with several exchange units,
// transports or launches: the layer with each, and the best. Where there are several EP sizes and
// anything was chosen: each against the smallest, both at their best choice, which is named.
// Empty without a choice. `varying`: the axes rows differ in.
std::string baseline_text(const std::vector<TableRow>& measured, const std::vector<Axis>& varying);

}  // namespace epsweep
