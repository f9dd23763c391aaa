#include "hostcuda/matrices.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace hostcuda {
namespace {

constexpr std::int64_t kBlock = 128;

std::int64_t blocks_of(std::int64_t size) {
  return (size + kBlock - 1) / kBlock;
}
// 128 x 128 scales: rows of them are padded to multiples of 4.
std::int64_t padded_blocks_of(std::int64_t k) {
  return (blocks_of(k) + 3) / 4 * 4;
}

// By CUDA's own conversion.
float e4m3_value(std::uint8_t code) {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> all{};
    for (unsigned i = 0; i < all.size(); ++i) {
      const __half_raw half =
          __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(i), __NV_E4M3);
      all[i] = __half2float(__half(half));
    }
    return all;
  }();
  return values[code];
}

float element(const Layout& layout, const void* data, std::int64_t at) {
  if (layout.type == CUDA_R_8F_E4M3) return e4m3_value(static_cast<const std::uint8_t*>(data)[at]);
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

std::int64_t Scale::count(std::int64_t outer, std::int64_t k) const {
  if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F) return outer * blocks_of(k);
  if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F) {
    return blocks_of(outer) * padded_blocks_of(k);
  }
  return 1;
}

float Scale::of(std::int64_t outer_index, std::int64_t block, std::int64_t outer,
                std::int64_t k) const {
  if (at == nullptr) return 1;
  if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F) return at[block * outer + outer_index];
  if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F) {
    return at[outer_index / kBlock * padded_blocks_of(k) + block];
  }
  return at[0];
}

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
  const std::int64_t step = desc.a_scale.is_one() && desc.b_scale.is_one() ? dims.k : kBlock;
  for (std::int64_t batch = 0; batch < a.batch; ++batch) {
    for (std::int64_t col = 0; col < dims.n; ++col) {
      for (std::int64_t row = 0; row < dims.m; ++row) {
        float total = 0;
        for (std::int64_t begin = 0; begin < dims.k; begin += step) {
          float sum = 0;
          for (std::int64_t i = begin; i < std::min(begin + step, dims.k); ++i) {
            const std::int64_t at_a = desc.transpose_a ? row * a.stride + i : i * a.stride + row;
            const std::int64_t at_b = desc.transpose_b ? i * b.stride + col : col * b.stride + i;
            sum += element(a, a_data, at_a + batch * a.batch_stride) *
                   element(b, b_data, at_b + batch * b.batch_stride);
          }
          const std::int64_t block = begin / kBlock;
          total += sum * desc.a_scale.of(row, block, dims.m, dims.k) *
                   desc.b_scale.of(col, block, dims.n, dims.k);
        }
        put(d, d_data, col * d.stride + row + batch * d.batch_stride, total);
      }
    }
  }
}

}  // namespace hostcuda
