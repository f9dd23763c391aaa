#include <vector_types.h>

#include "cuda/kernels/expert_slots.h"
#include "cuda/kernels/slot_rows.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

__device__ void copy_words(const uint4* __restrict__ from, std::int64_t words,
                           uint4* __restrict__ to) {
#pragma unroll 4
  for (std::int64_t w = threadIdx.x; w < words; w += blockDim.x) to[w] = from[w];
}

__global__ void into_slots_kernel(ExpertSlots slots, std::int64_t words, const uint4* from,
                                  uint4* to) {
  for_each_row(slots, [&](std::int64_t row, const Place& place) {
    copy_words(from + row * words, words, to + place.row * words);
  });
}

__global__ void out_of_slots_kernel(ExpertSlots slots, std::int64_t words, const uint4* from,
                                    uint4* to) {
  for_each_row(slots, [&](std::int64_t row, const Place& place) {
    copy_words(from + place.row * words, words, to + row * words);
  });
}

__device__ void* bytes_behind(void* base, std::int64_t bytes) {
  return static_cast<char*>(base) + bytes;
}

// Of product number `product`, whose operands are the `at`th ones.
__device__ void write_pointers(const BatchOperands& batch, std::int64_t product,
                               std::int64_t expert, std::int64_t at) {
  batch.pointers[product] = bytes_behind(batch.w, expert * batch.w_bytes);
  batch.pointers[batch.capacity + product] = bytes_behind(batch.x, at * batch.x_bytes);
  batch.pointers[2 * batch.capacity + product] = bytes_behind(batch.y, at * batch.y_bytes);
}

// A tile that is taken has a first row, so the thread that copies it can write the tile's pointers.
__global__ void into_tiles_kernel(ExpertSlots slots, std::int64_t words, const uint4* from,
                                  BatchOperands batch) {
  for_each_row(slots, [&](std::int64_t row, const Place& place) {
    copy_words(from + row * words, words, static_cast<uint4*>(batch.x) + place.row * words);
    if (threadIdx.x != 0 || place.row % batch.tile_rows != 0) return;
    const std::int64_t tile = place.row / batch.tile_rows;
    write_pointers(batch, tile, slots.first_expert + place.expert, tile);
  });
}

constexpr auto kWordBytes = static_cast<std::int64_t>(sizeof(uint4));

}  // namespace

void into_slots(cudaStream_t stream, const ExpertSlots& slots, std::int64_t row_bytes,
                const void* from, void* to) {
  const std::int64_t words = row_bytes / kWordBytes;
  launch(stream, slot_grid(slots, words), into_slots_kernel, slots, words,
         static_cast<const uint4*>(from), static_cast<uint4*>(to));
}

void out_of_slots(cudaStream_t stream, const ExpertSlots& slots, std::int64_t row_bytes,
                  const void* from, void* to) {
  const std::int64_t words = row_bytes / kWordBytes;
  launch(stream, slot_grid(slots, words), out_of_slots_kernel, slots, words,
         static_cast<const uint4*>(from), static_cast<uint4*>(to));
}

void into_tiles(cudaStream_t stream, const ExpertSlots& slots, std::int64_t row_bytes,
                const void* from, const BatchOperands& batch) {
  const std::int64_t words = row_bytes / kWordBytes;
  launch(stream, slot_grid(slots, words), into_tiles_kernel, slots, words,
         static_cast<const uint4*>(from), batch);
}

}  // namespace epsweep::cuda
