// One matrix product of cuBLASLt, prepared once for each number of rows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "cuda/handles.h"
#include "device/buffer.h"
#include "device/grouped_gemm.h"

namespace epsweep::cuda {

// Throws RunError naming the call; `call` is the text of the expression.
void check(cublasStatus_t status, const char* call);

// The process's cuBLASLt handle; made at first use, lives as long as the process.
cublasLtHandle_t cublaslt();

// What cuBLASLt is given to work in; fixed, so that heuristics choose alike for all kernels.
inline constexpr std::int64_t kMatmulWorkspaceBytes = 32 << 20;
// The process's own for the lane (0) and the streams forked from it (1, 2, ...): kernels run one
// after the other, so that one piece of memory for each stream serves all layers.
Buffer& library_workspace(int stream);
// What algorithms may ask for: that workspace, operands that start at multiples of 16 bytes (rows
// of a packed buffer promise no more), and parts of sums in fp32.
MatmulPreference make_matmul_preference();

// y[rows][n] = x[rows][k] * w[n][k]^T, row-major, accumulated in fp32. `batch` products at fixed
// distances, or one. In cuBLAS's column-major words: D (n x rows) = W^T (k x n) * X (k x rows), so
// the ragged dimension is its n, every leading dimension is k or n, and the weights are its A.
// With fp8, w and x are e4m3 and y is bf16. One scale each: of all products of a batch, and with
// fast accumulation, which tensor cores reach their rate with and whose sums have about 14 bits on
// Hopper. Scales of 128 (base/fp8_scales.h): x_scales [scale_blocks(k)][rows], rows a multiple of
// 4, no batch, and sums that are added up in fp32 every 128 inputs.
class Matmul {
 public:
  struct Shape {
    std::int64_t n = 0, k = 0;
    DType dtype = DType::bf16;
  };
  // Multiples of 16 bytes. Scales are on the device; null where the dtype has none.
  struct Operands {
    const void* x = nullptr;
    const void* w = nullptr;
    void* y = nullptr;
    const float* x_scales = nullptr;
    const float* w_scales = nullptr;
  };

  explicit Matmul(const Shape& shape);

  // Chooses an algorithm and makes the layouts; run() with other rows or batch throws.
  void prepare(std::int64_t rows, int batch = 1);
  // Enqueues; `workspace` has kMatmulWorkspaceBytes and belongs to the stream.
  void run(cudaStream_t stream, std::int64_t rows, const Operands& operands, Buffer& workspace,
           int batch = 1) const;

 private:
  struct Plan {
    MatrixLayout w, x, y;
    cublasLtMatmulAlgo_t algorithm{};
  };
  struct Key {
    std::int64_t rows;
    int batch;
    auto operator<=>(const Key&) const = default;
  };

  Plan make_plan(std::int64_t rows, int batch) const;
  // False where the library has none.
  bool find_algorithm(Plan& plan) const;
  bool can_use(const Plan& plan) const;
  void set_fp8_attributes();
  void set_scales(const float* w_scales, const float* x_scales) const;

  Shape shape_;
  MatmulDesc desc_;
  Buffer any_scales_;  // stands in for scales while an algorithm is chosen: null would be refused
  std::map<Key, Plan> plans_;
};

// Why cuBLAS kernels are not used for a shape: vector loads of 16 bytes, and tensor cores, want
// rows that are multiples of them; sizes are 32-bit integers.
std::optional<std::string> refuse_narrow_rows(const GemmShape& shape);

// Rows for which an algorithm is chosen: the smallest of 1, 2, 4, 8, 16, 24, 32, 48, 64, multiples
// of 32 up to 512 and of 128 above that is not below `rows`. Neighbouring row counts share it, so
// that a few rows more do not switch algorithms.
std::int64_t algorithm_rows(std::int64_t rows);

}  // namespace epsweep::cuda
