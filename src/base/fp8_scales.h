// How e4m3 weights and inputs are scaled: a value is its e4m3 number times its scale. C++17: nvcc
// compiles it too.
#pragma once

#include <cstdint>

namespace epsweep {

inline constexpr float kLargestE4m3 = 448;

// Of dtype fp8, for the inputs of both products: e4m3 then reaches 448 / 2 = 224. Tokens stay below
// 2. An activated value is a product of a gate and an up value (or the square of one), each a sum
// of independent uniform weights times inputs, hence sub-Gaussian with the variance of Gaussian
// ones, which the payload keeps below 4/3 of the mean square (workload/payload.h): the chance that
// one reaches 224 is below 4 exp(-224 * 3/8), 10^-36. Below 2^-11 they become zero, and up to 2^-7
// they have a spacing of 2^-10: small beside their rms of about 1/2.
inline constexpr float kFp8InputScale = 0.5F;

// Of dtype fp8_block128: 128 neighbouring inputs of a row, or 128 x 128 weights, share a scale; the
// last block of a row or matrix may be smaller.
inline constexpr std::int64_t kScaleBlock = 128;

constexpr std::int64_t scale_blocks(std::int64_t values) {
  return (values + kScaleBlock - 1) / kScaleBlock;
}

// The largest magnitude of a block becomes 448; a block of zeros stays one.
constexpr float block_scale(float largest) {
  return largest > 0 ? largest / kLargestE4m3 : 1.0F;
}

// Scales of weights [n][k] lie as [scale_blocks(n)][scale_row(k)]: cuBLASLt wants rows of them that
// are multiples of 4 (cuBLAS documentation, 128x128 block scaling, scaling factors layouts).
constexpr std::int64_t scale_row(std::int64_t k) {
  return (scale_blocks(k) + 3) / 4 * 4;
}
constexpr std::int64_t weight_scales(std::int64_t n, std::int64_t k) {
  return scale_blocks(n) * scale_row(k);
}

}  // namespace epsweep
