// Moving and combining rows; twins of src/cpu/cpu_token_ops.h. All calls enqueue. C++17.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "cuda/kernels/element_type.h"

namespace epsweep::cuda {

// out[position[i]] = in[i / repeat] for i < rows: the first row_bytes of rows in_stride_bytes
// apart. The widest access that the sizes and addresses allow is used: 16 bytes where both are
// multiples.
void scatter_rows(cudaStream_t stream, const void* in, std::int64_t in_stride_bytes, int repeat,
                  const std::int32_t* position, std::int64_t rows, std::int64_t row_bytes,
                  void* out);
// out[i] = in[source[i]] for i < rows: the first row_bytes of rows in_stride_bytes apart.
void gather_rows(cudaStream_t stream, const void* in, std::int64_t in_stride_bytes,
                 const std::int32_t* source, std::int64_t rows, std::int64_t row_bytes, void* out);

// row_bytes from byte source[i] * in_stride_bytes to byte position[i] * out_stride_bytes, i < rows.
struct MoveArguments {
  std::int64_t rows = 0, row_bytes = 0, in_stride_bytes = 0, out_stride_bytes = 0;
  const std::int32_t* source = nullptr;
  const std::int32_t* position = nullptr;  // null for 0, 1, 2, ...
  const void* in = nullptr;
  void* out = nullptr;
};
void move_rows(cudaStream_t stream, const MoveArguments& arguments);

// out[t][c] = sum over j < top_k of weights[t * top_k + j] * in[position[t * top_k + j]][c], in
// order of j, each step a fused multiply-add in fp32; out [tokens][cols] fp32.
void weighted_reduce(cudaStream_t stream, ElementType type, int top_k, const std::int32_t* position,
                     const float* weights, std::int64_t tokens, std::int64_t cols, const void* in,
                     float* out);

// out[s] = sum over i, first[s] <= i < first[s + 1], of weights[i] * in[row[i]], in order of i,
// each step a fused multiply-add in fp32, stored as out_type; rows of `cols` columns.
struct SegmentArguments {
  ElementType in_type = ElementType::bf16, out_type = ElementType::fp32;
  std::int64_t segments = 0, cols = 0;
  const std::int32_t* first = nullptr;  // [segments + 1]
  const std::int32_t* row = nullptr;    // [first[segments]]
  const float* weights = nullptr;       // the same; null for ones
  const void* in = nullptr;
  void* out = nullptr;
};
void segment_reduce(cudaStream_t stream, const SegmentArguments& arguments);

// swiglu: in [rows][2 * cols], gate beside up; squared_relu: in [rows][cols]; out [rows][cols].
void swiglu(cudaStream_t stream, ElementType type, std::int64_t rows, std::int64_t cols,
            const void* in, void* out);
void squared_relu(cudaStream_t stream, ElementType type, std::int64_t rows, std::int64_t cols,
                  const void* in, void* out);

}  // namespace epsweep::cuda
