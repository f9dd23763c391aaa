// Element types of expert weights and of rows.
#pragma once

#include <cstdint>
#include <string_view>

namespace epsweep {

// What expert weights are, and with it how products are computed. fp8: weights, and the inputs of
// every product right before it, are e4m3 with one fp32 scale each; fp8_block128: with one for
// every 128 x 128 weights and for every 128 neighbouring inputs of a row (base/fp8_scales.h).
enum class DType { bf16, fp32, fp8, fp8_block128 };

constexpr std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bf16";
    case DType::fp32:
      return "fp32";
    case DType::fp8:
      return "fp8";
    case DType::fp8_block128:
      break;
  }
  return "fp8_block128";
}

constexpr bool is_fp8(DType dtype) {
  return dtype == DType::fp8 || dtype == DType::fp8_block128;
}

// Of a weight; scales are not in it.
constexpr std::int64_t bytes_of(DType dtype) {
  if (is_fp8(dtype)) return 1;
  return dtype == DType::bf16 ? 2 : 4;
}

// What rows are outside products: while they travel, before and after the activation, and as
// outputs.
constexpr DType row_dtype(DType dtype) {
  return is_fp8(dtype) ? DType::bf16 : dtype;
}

}  // namespace epsweep
