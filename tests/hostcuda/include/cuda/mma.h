// Twin of src/cuda/mma.h: lanes put their registers together and each computes its own sums.
#pragma once

#include <cstdint>
#include <cstring>

#include "hostcuda/block.h"

namespace epsweep::cuda {

inline float bf16_part(std::uint32_t word, int part) {
  const std::uint32_t bits = part == 0 ? word << 16 : word & 0xffff0000U;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The same register of all lanes.
struct LaneWords {
  std::uint32_t of[32];
  explicit LaneWords(std::uint32_t own) {
    unsigned long long* slots = hostcuda::warp_slots();
    slots[hostcuda::lane()] = own;
    __syncwarp();
    for (int lane = 0; lane < 32; ++lane) of[lane] = static_cast<std::uint32_t>(slots[lane]);
    __syncwarp();
  }
};

inline void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  const LaneWords a_words[4] = {LaneWords(a[0]), LaneWords(a[1]), LaneWords(a[2]), LaneWords(a[3])};
  const LaneWords b_words[2] = {LaneWords(b[0]), LaneWords(b[1])};
  const int group = hostcuda::lane() / 4, quad = hostcuda::lane() % 4;
  for (int i = 0; i < 4; ++i) {
    const int row = group + (i < 2 ? 0 : 8), col = 2 * quad + i % 2;
    for (int k = 0; k < 16; ++k) {
      const LaneWords& from_a = a_words[(row < 8 ? 0 : 1) + (k < 8 ? 0 : 2)];
      d[i] += bf16_part(from_a.of[row % 8 * 4 + k % 8 / 2], k % 2) *
              bf16_part(b_words[k < 8 ? 0 : 1].of[col * 4 + k % 8 / 2], k % 2);
    }
  }
}

}  // namespace epsweep::cuda
