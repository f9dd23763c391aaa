#include "workload/dot.h"

#include <algorithm>
#include <array>
#include <cstring>

// EPSWEEP_MULTIVERSION comes from CMakeLists.txt: one copy per instruction set, picked at start.

namespace epsweep {
namespace {

// 16 lanes; narrower machines split it. Only ever local, so its calling convention never matters.
using Lanes = float __attribute__((vector_size(64)));
constexpr std::size_t kLanes = 16, kBlock = 256, kSums = 4;

}  // namespace

EPSWEEP_MULTIVERSION double dot(const float* a, const float* b, std::size_t size) {
  double total = 0;
  for (std::size_t begin = 0; begin < size; begin += kBlock) {
    const std::size_t end = std::min(size, begin + kBlock);
    std::array<Lanes, kSums> sums{};
    std::size_t i = begin;
    for (; i + kSums * kLanes <= end; i += kSums * kLanes) {
      for (std::size_t s = 0; s < kSums; ++s) {
        Lanes x, y;
        std::memcpy(&x, a + i + s * kLanes, sizeof(Lanes));
        std::memcpy(&y, b + i + s * kLanes, sizeof(Lanes));
        sums[s] += x * y;
      }
    }
    const Lanes lanes = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float tail = 0;
    for (; i < end; ++i) tail += a[i] * b[i];
    for (std::size_t lane = 0; lane < kLanes; ++lane) tail += lanes[lane];
    total += static_cast<double>(tail);
  }
  return total;
}

}  // namespace epsweep
