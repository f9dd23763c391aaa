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

// To 7e-6 of itself, for results that are rounded to bf16: e^-x with the minimax polynomial of
// degree 4, and the reciprocal by two Newton steps (with constants that centre their errors) from
// the difference of exponents, since vector divisions take longer than all of it. Clamped at -86
// and 87 on the bit patterns, which as signed integers order positive numbers and as unsigned ones
// negative numbers last.
inline float coarse_sigmoid(float x) {
  constexpr float kLog2E = 1.44269504F, kRound = 12582912.0F;
  constexpr std::int32_t kLargest = 0x42ae0000;     // 87
  constexpr std::uint32_t kSmallest = 0xc2ac0000U;  // -86
  const auto bits = std::bit_cast<std::int32_t>(x);
  const auto below = static_cast<std::uint32_t>(bits < kLargest ? bits : kLargest);
  x = std::bit_cast<float>(below < kSmallest ? below : kSmallest);
  const float shifted = x * -kLog2E + kRound;
  const float r = x * -kLog2E - (shifted - kRound);
  float p = 0.0095701019F;
  p = p * r + 0.0559178603F;
  p = p * r + 0.2402474483F;
  p = p * r + 0.6931218147F;
  p = p * r + 0.9999992614F;
  const float d = 1.0F + std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) +
                                              (std::bit_cast<std::uint32_t>(shifted) << 23));
  float y = std::bit_cast<float>(0x7ef23000U - std::bit_cast<std::uint32_t>(d));
  y *= 2.001498F - d * y;
  return y * (2.000001124F - d * y);
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
