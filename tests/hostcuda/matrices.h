// Matrices as cuBLAS and cuBLASLt describe them, and their product in fp32.
#pragma once

#include <cstdint>

#include <cublasLt.h>

namespace hostcuda {

struct Desc {
  bool transpose_a = false, transpose_b = false;
  std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
};

struct Layout {
  cudaDataType_t type;
  std::int64_t rows, cols, stride;  // column-major; stride between columns
  std::int32_t batch = 1;
  std::int64_t batch_stride = 0;
  // Of a grouped layout, whose dimensions are read on the device; else 0.
  int groups = 0;
  const std::int32_t *rows_at = nullptr, *cols_at = nullptr, *leading_at = nullptr;

  Layout of_group(int group) const {
    return {type, rows_at[group], cols_at[group], leading_at[group]};
  }
};

// Whether an address is one that 16-byte accesses may use.
bool aligned(const void* data);

// op(A) is m x k, op(B) k x n, D m x n.
struct Dims {
  std::int64_t m, n, k;
};
// False where the shapes, types or batches do not fit each other.
bool dims_of(const Desc& desc, const Layout& a, const Layout& b, const Layout& d, Dims& dims);

void multiply(const Desc& desc, const Layout& a, const Layout& b, const Layout& d, const Dims& dims,
              const void* a_data, const void* b_data, void* d_data);

}  // namespace hostcuda
