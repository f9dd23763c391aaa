// e4m3 bit patterns (OCP 8-bit floating point: 4 bits of exponent, 3 of mantissa, no infinities)
// and float: round to nearest, ties to even, saturating at 448, as the conversions of CUDA with
// saturation do.
#pragma once

#include <bit>
#include <cstdint>

#include "base/fp8_scales.h"

namespace epsweep {

// NaN becomes 0x7f, its only pattern besides 0xff.
inline std::uint8_t e4m3_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU, sign = (bits >> 24) & 0x80U;
  if (magnitude > 0x7f800000U) return 0x7f;
  const auto size = std::bit_cast<float>(magnitude);
  std::uint32_t code = 0x7e;
  if (size < 0x1p-6F) {
    // Multiples of 2^-9, which is how far numbers from 2^14 on are apart.
    code = std::bit_cast<std::uint32_t>(size + 0x1p14F) - std::bit_cast<std::uint32_t>(0x1p14F);
  } else if (size < kLargestE4m3) {
    // Twenty bits of mantissa go; exponents are 7 more than they say, not 127.
    const std::uint32_t rounded = magnitude + 0x7ffffU + ((magnitude >> 20) & 1U);
    code = (rounded >> 20) - ((127U - 7U) << 3);
  }
  return static_cast<std::uint8_t>(code | sign);
}

inline float float_of_e4m3(std::uint8_t code) {
  const std::uint32_t magnitude = code & 0x7fU, sign = (code & 0x80U) << 24;
  if (magnitude == 0x7fU) return std::bit_cast<float>(sign | 0x7fc00000U);
  const float size = magnitude < 8 ? static_cast<float>(magnitude) * 0x1p-9F
                                   : std::bit_cast<float>((magnitude << 20) + ((127U - 7U) << 23));
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

}  // namespace epsweep
