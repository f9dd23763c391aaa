#include "cuda/kernels/elements.h"
#include "cuda/kernels/rows.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

constexpr int kThreads = 128;

// A thread owns kWidth neighbouring columns of one token at a time; blockIdx.y walks the columns.
template <typename Element, int kWidth>
__global__ void weighted_reduce_kernel(int top_k, const std::int32_t* position,
                                       const float* weights, std::int64_t tokens, std::int64_t cols,
                                       const Element* in, float* out) {
  struct alignas(sizeof(Element) * kWidth) Pack {
    Element value[kWidth];
  };
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kWidth;
  if (first >= cols) return;
  for (std::int64_t token = blockIdx.x; token < tokens; token += gridDim.x) {
    float sum[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum[i] = 0.0F;
    for (std::int64_t j = token * top_k; j < (token + 1) * top_k; ++j) {
      const float weight = weights[j];
      const Pack pack = *reinterpret_cast<const Pack*>(in + position[j] * cols + first);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum[i] = fmaf(weight, load(&pack.value[i]), sum[i]);
    }
    float* to = out + token * cols + first;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) to[i] = sum[i];
  }
}

template <typename Element>
void reduce(cudaStream_t stream, int top_k, const std::int32_t* position, const float* weights,
            std::int64_t tokens, std::int64_t cols, const void* in, float* out) {
  constexpr int kWide = Vector<Element>::kSize;
  const auto* rows = static_cast<const Element*>(in);
  const bool wide = cols % kWide == 0 && reinterpret_cast<std::uintptr_t>(in) % 16 == 0;
  const std::int64_t threads = wide ? cols / kWide : cols;
  const Grid grid{dim3(blocks_for(tokens, 1), blocks_for(threads, kThreads)), dim3(kThreads)};
  if (wide) {
    launch(stream, grid, weighted_reduce_kernel<Element, kWide>, top_k, position, weights, tokens,
           cols, rows, out);
  } else {
    launch(stream, grid, weighted_reduce_kernel<Element, 1>, top_k, position, weights, tokens, cols,
           rows, out);
  }
}

}  // namespace

void weighted_reduce(cudaStream_t stream, ElementType type, int top_k, const std::int32_t* position,
                     const float* weights, std::int64_t tokens, std::int64_t cols, const void* in,
                     float* out) {
  if (type == ElementType::bf16) {
    reduce<__nv_bfloat16>(stream, top_k, position, weights, tokens, cols, in, out);
  } else {
    reduce<float>(stream, top_k, position, weights, tokens, cols, in, out);
  }
}

}  // namespace epsweep::cuda
