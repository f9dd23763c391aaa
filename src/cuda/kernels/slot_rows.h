// Kernels that walk the rows of experts, each with its place in the slots. C++17, device only.
#pragma once

#include <cstdint>

#include "cuda/kernels/elements.h"
#include "cuda/kernels/expert_slots.h"
#include "cuda/launch.h"

namespace epsweep::cuda {

constexpr int kSlotThreads = 256;

// A row that has a place: its expert's position in the slots, and its row there.
struct Place {
  int expert;
  std::int64_t row;
};

// The last expert that does not begin behind the row; experts without rows begin where the next
// one does.
__device__ inline Place place_of(const ExpertSlots& slots, int row) {
  int low = 0, high = slots.num_experts - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (slots.begin[middle] <= row) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return {low, static_cast<std::int64_t>(slots.slot[low]) + (row - slots.begin[low])};
}

// A row is walked by threadIdx.x of its block, several rows of a block by threadIdx.y.
template <typename Visit>
__device__ void for_each_row(const ExpertSlots& slots, const Visit& visit) {
  const std::int64_t end = slots.begin[slots.num_experts];
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t row =
           slots.begin[0] + static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       row < end; row += step) {
    visit(row, place_of(slots, static_cast<int>(row)));
  }
}

// Wide enough for a row of so many words, but not wider: short rows share a block. At least
// `fewest` threads side by side, a power of two.
inline Grid slot_grid(const ExpertSlots& slots, std::int64_t words, unsigned fewest = 1) {
  unsigned lanes = kSlotThreads;
  while (lanes > fewest && lanes / 2 >= words) lanes /= 2;
  const unsigned per_block = kSlotThreads / lanes;
  const std::int64_t rows = slots.begin[slots.num_experts] - slots.begin[0];
  return {dim3(blocks_for(rows, per_block)), dim3(lanes, per_block)};
}

}  // namespace epsweep::cuda
