// Products of few rows with large weight matrices: every weight is read once, at full width. C++17.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace epsweep::cuda {

// Experts of one launch: their row offsets travel as a kernel argument.
constexpr int kGemvExperts = 256;
// Rows that share one pass over an expert's weights; more rows take more passes.
constexpr int kGemvRows = 16;

// Rows [begin[e], begin[e + 1]) of x and y belong to expert e.
struct GemvRows {
  std::int32_t begin[kGemvExperts + 1];
};

// y[row][n] = x[row][k] * w[e][n][k]^T in bf16, summed in fp32, for num_experts <= kGemvExperts; n
// is a multiple of 16 and k of 32; all addresses are multiples of 16 bytes. Enqueues one kernel.
void gemv(cudaStream_t stream, const GemvRows& rows, int num_experts, std::int64_t n,
          std::int64_t k, const void* x, const void* w, void* y);

}  // namespace epsweep::cuda
