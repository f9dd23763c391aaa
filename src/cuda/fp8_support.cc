#include "cuda/fp8_support.h"

#include <cublasLt.h>
#include <fmt/format.h>

#include "cuda/device_choice.h"
#include "cuda/matmul.h"

namespace epsweep::cuda {
namespace {

constexpr int kFirstFp8 = 89, kHopper = 90, kFirstBlockScales = 120900;

std::string capability_text(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

}  // namespace

std::optional<std::string> refuse_fp8(DType dtype, int compute_capability, int cublas_version) {
  if (!is_fp8(dtype)) return std::nullopt;
  if (dtype == DType::fp8_block128) {
    if (compute_capability != kHopper) {
      return fmt::format(
          "cuBLASLt has scales of 1x128 and 128x128 for compute capability 9.0 only, this device "
          "has {}",
          capability_text(compute_capability));
    }
    if (cublas_version < kFirstBlockScales) {
      return fmt::format("scales of 1x128 and 128x128 want cuBLAS 12.9, this is {}.{}",
                         cublas_version / 10000, cublas_version / 100 % 100);
    }
    return std::nullopt;
  }
  if (compute_capability >= kFirstFp8) return std::nullopt;
  return fmt::format("fp8 wants compute capability 8.9, this device has {}",
                     capability_text(compute_capability));
}

std::optional<std::string> refuse_cublaslt(const GemmShape& shape) {
  if (const auto reason = refuse_narrow_rows(shape)) return reason;
  if (!is_fp8(shape.dtype)) return std::nullopt;
  return refuse_fp8(shape.dtype, current_compute_capability(),
                    static_cast<int>(cublasLtGetVersion()));
}

std::optional<std::string> refuse_cublas(const GemmShape& shape) {
  if (is_fp8(shape.dtype)) return "cuBLAS's batches without cuBLASLt have no fp8";
  return refuse_narrow_rows(shape);
}

}  // namespace epsweep::cuda
