// The calls of cuBLASLt that came with grouped layouts. A build against older headers has these
// functions too, and has_grouped_layouts() says no.
#pragma once

#include <cstdint>

#include "cuda/handles.h"

namespace epsweep::cuda {

bool has_grouped_layouts();

// Matrices of a group, column-major: device arrays of 32-bit integers, one entry per group, which
// are read when the product runs.
struct GroupDims {
  const std::int32_t* rows = nullptr;
  const std::int32_t* cols = nullptr;
  const std::int32_t* leading = nullptr;
};
MatrixLayout make_grouped_layout(cudaDataType_t type, int num_groups, const GroupDims& dims);

// What the heuristic is told, as the dimensions themselves are on the device.
struct MeanDims {
  std::int64_t rows = 0, cols = 0;  // of the result, column-major
  std::int64_t summed = 0;
};
void set_mean_dims(cublasLtMatmulPreference_t preference, const MeanDims& mean);

}  // namespace epsweep::cuda
