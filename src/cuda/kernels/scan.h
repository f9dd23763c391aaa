// Exclusive prefix sums by one block. C++17, device only.
#pragma once

#include <cstdint>

#include "cuda/launch.h"

namespace epsweep::cuda {

constexpr int kScanThreads = 256;

struct ScanMemory {
  std::int64_t sums[kScanThreads];
};

// sums[i] = sum of value(0..i-1) for i < count, through put(i, sum); all threads of a block of
// kScanThreads call it. Each thread sums a run of neighbours, then runs are summed by doubling.
template <typename Value, typename Put>
__device__ void exclusive_scan(std::int64_t count, Value value, Put put) {
  ScanMemory& memory = shared_memory<ScanMemory>();
  const std::int64_t run = (count + kScanThreads - 1) / kScanThreads;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t begin = thread * run, end = begin + run < count ? begin + run : count;
  std::int64_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) sum += value(i);
  memory.sums[thread] = sum;
  __syncthreads();
  for (int step = 1; step < kScanThreads; step *= 2) {
    const std::int64_t before = thread >= step ? memory.sums[thread - step] : 0;
    __syncthreads();
    memory.sums[thread] += before;
    __syncthreads();
  }
  std::int64_t before = memory.sums[thread] - sum;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t here = value(i);
    put(i, before);
    before += here;
  }
  __syncthreads();
}

}  // namespace epsweep::cuda
