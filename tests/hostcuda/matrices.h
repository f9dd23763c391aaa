// Matrices as cuBLAS and cuBLASLt describe them, and their product in fp32.
#pragma once

#include <cstdint>

#include <cublasLt.h>

namespace hostcuda {

// Of a matrix in fp8.
struct Scale {
  std::int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  const float* at = nullptr;  // read when the product is computed

  bool is_one() const { return mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F; }
  // How many there are for `outer` rows of op(A), or columns of op(B), of k elements.
  std::int64_t count(std::int64_t outer, std::int64_t k) const;
  // Of an element's block of 128 along k.
  float of(std::int64_t outer_index, std::int64_t block, std::int64_t outer, std::int64_t k) const;
};

struct Desc {
  bool transpose_a = false, transpose_b = false;
  std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int8_t fast_accumulation = 0;
  Scale a_scale = {}, b_scale = {};
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

// In blocks of 128 along k where scales are.
void multiply(const Desc& desc, const Layout& a, const Layout& b, const Layout& d, const Dims& dims,
              const void* a_data, const void* b_data, void* d_data);

}  // namespace hostcuda
