// e4m3 inputs and weights with their scales (base/fp8_scales.h). All calls enqueue; addresses are
// multiples of 16 bytes, and so is k. C++17.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "base/fp8_scales.h"
#include "base/random.h"
#include "cuda/kernels/expert_slots.h"

namespace epsweep::cuda {

// out[slot of row][k] = in[row][k] / kFp8InputScale; in bf16 without gaps. What lies in the slots
// behind an expert's rows stays as it is.
void quantise_rows(cudaStream_t stream, const ExpertSlots& slots, std::int64_t k, const void* in,
                   void* out);

// Room for rows with scales of 1x128: cuBLASLt wants rows of such products in multiples of 4.
constexpr std::int64_t kScaledRows = 4;

// The same with block_scale() of every 128 inputs. Scales of an expert whose first slot is s and
// whose rows fill r slots, r a multiple of kScaledRows, begin at scales + s * scale_blocks(k) and
// lie as [scale_blocks(k)][r]. Slots of experts with rows begin at multiples of kScaledRows and
// are no more than those rows need.
void quantise_rows_1x128(cudaStream_t stream, const ExpertSlots& slots, std::int64_t k,
                         const void* in, void* out, float* scales);

// scales[i] = value.
void fill_scales(cudaStream_t stream, float value, std::int64_t count, float* scales);

// The first `count` payload values of these words over their unit: odd numbers up to 255, rounded.
// `count` is a multiple of 16.
void fill_e4m3(cudaStream_t stream, RandomStream values, std::int64_t count, void* out);
// Payload values [n][k] with block_scale() of every 128 x 128; scales [scale_blocks(n)][scale_row(
// k)], of which those behind scale_blocks(k) are ones.
void fill_e4m3_128x128(cudaStream_t stream, RandomStream values, float unit, std::int64_t n,
                       std::int64_t k, void* out, float* scales);

}  // namespace epsweep::cuda
