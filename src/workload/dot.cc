#include "workload/dot.h"

#include <algorithm>
#include <array>

// EPSWEEP_MULTIVERSION comes from CMakeLists.txt: one copy per instruction set, picked at start.

namespace epsweep {

// Compilers may vectorise the sixteen running sums without reordering any one of them.
EPSWEEP_MULTIVERSION double dot(const float* a, const float* b, std::size_t size) {
  double total = 0;
  for (std::size_t begin = 0; begin < size; begin += 256) {
    const std::size_t end = std::min(size, begin + 256);
    std::array<float, 16> sums{};
    std::size_t i = begin;
    for (; i + sums.size() <= end; i += sums.size()) {
      for (std::size_t lane = 0; lane < sums.size(); ++lane)
        sums[lane] += a[i + lane] * b[i + lane];
    }
    for (; i < end; ++i) sums[0] += a[i] * b[i];
    for (const float sum : sums) total += static_cast<double>(sum);
  }
  return total;
}

}  // namespace epsweep
