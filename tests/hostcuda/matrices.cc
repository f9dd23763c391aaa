#include "hostcuda/matrices.h"

#include <cstring>

namespace hostcuda {
namespace {

float element(const Layout& layout, const void* data, std::int64_t at) {
  if (layout.type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  const auto bits = static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(data)[at]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

void put(const Layout& layout, void* data, std::int64_t at, float value) {
  if (layout.type == CUDA_R_32F) {
    static_cast<float*>(data)[at] = value;
    return;
  }
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  bits = nan ? bits | 0x400000U : bits + 0x7fffU + ((bits >> 16) & 1U);
  static_cast<std::uint16_t*>(data)[at] = static_cast<std::uint16_t>(bits >> 16);
}

}  // namespace

bool aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

bool dims_of(const Desc& desc, const Layout& a, const Layout& b, const Layout& d, Dims& dims) {
  dims.m = desc.transpose_a ? a.cols : a.rows;
  dims.k = desc.transpose_a ? a.rows : a.cols;
  dims.n = desc.transpose_b ? b.rows : b.cols;
  const std::int64_t k_of_b = desc.transpose_b ? b.cols : b.rows;
  return dims.k == k_of_b && d.rows == dims.m && d.cols == dims.n && a.type == b.type &&
         a.batch == b.batch && a.batch == d.batch;
}

void multiply(const Desc& desc, const Layout& a, const Layout& b, const Layout& d, const Dims& dims,
              const void* a_data, const void* b_data, void* d_data) {
  for (std::int64_t batch = 0; batch < a.batch; ++batch) {
    for (std::int64_t col = 0; col < dims.n; ++col) {
      for (std::int64_t row = 0; row < dims.m; ++row) {
        float sum = 0;
        for (std::int64_t i = 0; i < dims.k; ++i) {
          const std::int64_t at_a = desc.transpose_a ? row * a.stride + i : i * a.stride + row;
          const std::int64_t at_b = desc.transpose_b ? i * b.stride + col : col * b.stride + i;
          sum += element(a, a_data, at_a + batch * a.batch_stride) *
                 element(b, b_data, at_b + batch * b.batch_stride);
        }
        put(d, d_data, col * d.stride + row + batch * d.batch_stride, sum);
      }
    }
  }
}

}  // namespace hostcuda
