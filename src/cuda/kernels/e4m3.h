// Rounding to e4m3 on the device, four numbers to a word, the first in its lowest byte. C++17,
// device only.
#pragma once

#include <cstring>

#include <cuda_fp8.h>

namespace epsweep::cuda {

// To nearest, ties to even, saturating at 448, as base/float8.h.
__device__ inline unsigned e4m3x4(float a, float b, float c, float d) {
  const unsigned low = __nv_cvt_float2_to_fp8x2(float2{a, b}, __NV_SATFINITE, __NV_E4M3);
  const unsigned high = __nv_cvt_float2_to_fp8x2(float2{c, d}, __NV_SATFINITE, __NV_E4M3);
  return low | high << 16;
}

__device__ inline float float_of_bits(unsigned bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
// The two bf16 numbers of a word.
__device__ inline float first_of(unsigned word) {
  return float_of_bits(word << 16);
}
__device__ inline float second_of(unsigned word) {
  return float_of_bits(word & 0xffff0000U);
}

}  // namespace epsweep::cuda
