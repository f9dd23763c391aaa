// Which cuBLAS releases multiply grouped layouts rightly on which devices.
#pragma once

#include <optional>
#include <string>

namespace epsweep::cuda {

// The reason why not, or nothing. `cublas_version` as cublasLtGetVersion() tells it, 130400 for
// 13.4.0; `compute_capability` 90 for 9.0. Sources: release notes of cuBLAS in CUDA 13.1 to 13.4
// Update 1, and the checks of TransformerEngine (pull requests 2765, 3119, 3475).
std::optional<std::string> refuse_grouped_layouts(int cublas_version, int compute_capability);

}  // namespace epsweep::cuda
