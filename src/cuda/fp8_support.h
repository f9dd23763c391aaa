// Which devices and cuBLAS releases multiply e4m3, with which scales.
#pragma once

#include <optional>
#include <string>

#include "base/dtype.h"
#include "device/grouped_gemm.h"

namespace epsweep::cuda {

// The reason why not, or nothing; nothing for dtypes that are not fp8. `compute_capability` 90 for
// 9.0, `cublas_version` 120900 for 12.9. Source: cuBLAS documentation, table of scaling modes, and
// release notes of CUDA 12.9.
std::optional<std::string> refuse_fp8(DType dtype, int compute_capability, int cublas_version);

// refuse_narrow_rows() and, on the current device, refuse_fp8().
std::optional<std::string> refuse_cublaslt(const GemmShape& shape);
// refuse_narrow_rows(), and every fp8: of cuBLAS's own batches, without cuBLASLt.
std::optional<std::string> refuse_cublas(const GemmShape& shape);

}  // namespace epsweep::cuda
