// Rows of experts, copied between a matrix without gaps and one where every expert has room. C++17.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace epsweep::cuda {

// Experts of one launch: their places travel as a kernel argument.
constexpr int kSlotExperts = 256;

// Rows [begin[e], begin[e + 1]) of the matrix without gaps have their place from slot[e] on.
struct ExpertSlots {
  int num_experts;
  int first_expert;  // number of the first of them among the rank's
  std::int32_t begin[kSlotExperts + 1];
  std::int32_t slot[kSlotExperts];
};

// Where a batch of products finds its operands: three arrays of `capacity` device pointers, to an
// expert's weights, to its inputs and to its outputs.
struct BatchOperands {
  void** pointers = nullptr;  // on the device
  std::int64_t capacity = 0;
  std::int64_t tile_rows = 0;  // of a product
  void* w = nullptr;
  void* x = nullptr;
  void* y = nullptr;
  std::int64_t w_bytes = 0;               // of an expert
  std::int64_t x_bytes = 0, y_bytes = 0;  // of a tile
};

// Enqueue one kernel each; row_bytes and all addresses are multiples of 16. What lies in the slots
// behind an expert's rows stays as it is.
void into_slots(cudaStream_t stream, const ExpertSlots& slots, std::int64_t row_bytes,
                const void* from, void* to);
void out_of_slots(cudaStream_t stream, const ExpertSlots& slots, std::int64_t row_bytes,
                  const void* from, void* to);
// into_slots() to batch.x, where every slot begins with a tile, and the pointers to it.
void into_tiles(cudaStream_t stream, const ExpertSlots& slots, std::int64_t row_bytes,
                const void* from, const BatchOperands& batch);

}  // namespace epsweep::cuda
