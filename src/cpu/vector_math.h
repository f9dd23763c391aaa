// exp and its relatives for loops the compiler vectorises: no branches, no table, no errno.
#pragma once

#include <bit>
#include <cstdint>

namespace epsweep {

// Relative error below 3e-7 in [-87.3, 88]; arguments outside are clamped there, NaN stays NaN.
// Cody-Waite reduction to |r| <= ln(2) / 2 and the Taylor polynomial of degree 7.
inline float fast_exp(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low mantissa bits.
  constexpr float kRound = 12582912.0F;
  x = x < -87.3F ? -87.3F : x;
  x = x > 88.0F ? 88.0F : x;
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000U;
  return p * std::bit_cast<float>(exponent);
}

inline float fast_sigmoid(float x) {
  return 1.0F / (1.0F + fast_exp(-x));
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), the second term as 2 atanh(u / (2 + u)); the odd
// series to s^15 leaves 1e-9 at s = 1/3.
inline float fast_softplus(float x) {
  const float magnitude = x < 0.0F ? -x : x;
  const float u = fast_exp(-magnitude);
  const float s = u / (2.0F + u);
  const float s2 = s * s;
  float p = 1.0F / 15.0F;
  p = p * s2 + 1.0F / 13.0F;
  p = p * s2 + 1.0F / 11.0F;
  p = p * s2 + 1.0F / 9.0F;
  p = p * s2 + 1.0F / 7.0F;
  p = p * s2 + 1.0F / 5.0F;
  p = p * s2 + 1.0F / 3.0F;
  p = p * s2 + 1.0F;
  return (x > 0.0F ? x : 0.0F) + 2.0F * s * p;
}

}  // namespace epsweep
