// Element types of activations and expert weights.
#pragma once

#include <cstdint>
#include <string_view>

namespace epsweep {

enum class DType { bf16, fp32 };

constexpr std::string_view to_string(DType dtype) {
  return dtype == DType::bf16 ? "bf16" : "fp32";
}

constexpr std::int64_t bytes_of(DType dtype) {
  return dtype == DType::bf16 ? 2 : 4;
}

}  // namespace epsweep
