// Reading and writing bf16 and fp32 elements on the device, one or a 16-byte vector at a time.
// C++17.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <vector_types.h>

namespace epsweep::cuda {

__device__ inline float load(const float* at) {
  return *at;
}
__device__ inline float load(const __nv_bfloat16* at) {
  return __bfloat162float(*at);
}
__device__ inline void store(float value, float* at) {
  *at = value;
}
__device__ inline void store(float value, __nv_bfloat16* at) {
  *at = __float2bfloat16(value);
}

// As many elements as 16 bytes hold: one load or store instruction.
template <typename Element>
struct alignas(16) Vector {
  static constexpr int kSize = 16 / static_cast<int>(sizeof(Element));
  Element value[kSize];
};

// Blocks of `per_block` items that cover `items`, at most what keeps every GPU busy: kernels walk
// the rest with a grid-wide stride.
inline unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
  constexpr std::int64_t kMost = 1 << 16;
  const std::int64_t blocks = (items + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < kMost ? blocks : kMost);
}

}  // namespace epsweep::cuda
