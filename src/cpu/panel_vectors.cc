#include <algorithm>
#include <array>
#include <cstring>

#include "base/bfloat16.h"
#include "cpu/panel_product.h"
#include "cpu/row_kernels.h"
#include "cpu/weight_panels.h"

// EPSWEEP_MULTIVERSION: see cmake/options.cmake. The products of bf16 are fp32 multiplications: on
// the Intel CPUs measured, VDPBF16PS does half as many operations a second as fp32 FMA.

namespace epsweep {
namespace {

// Half a panel; narrower machines split it.
using Lanes = float __attribute__((vector_size(64)));
using Words = std::uint32_t __attribute__((vector_size(64)));

constexpr std::int64_t kWidth = WeightPanels::kPanelWidth;
constexpr std::int64_t kBlockRows = 6;  // sums of 12 vectors, 4 of weights: AVX-512 has 32
constexpr std::int64_t kMostRows = 256;
// Ahead of the reads: what a plain read of cold memory is fastest with.
constexpr std::int64_t kAheadBytes = 2048;

// sums[r][half] over k; x has rows of `stride` fp32 values.
template <int kRows>
using Sums = Lanes[static_cast<std::size_t>(kRows)][2];

template <int kRows>
[[gnu::always_inline]] inline void add_bf16(const float* x, std::int64_t stride, std::int64_t k,
                                            const std::byte* panel, Sums<kRows>& sums) {
  for (std::int64_t i = 0; i < k; i += 2, panel += 2 * 64) {
    __builtin_prefetch(panel + kAheadBytes);
    __builtin_prefetch(panel + kAheadBytes + 64);
    for (int half = 0; half < 2; ++half) {
      Words pairs;
      std::memcpy(&pairs, __builtin_assume_aligned(panel + 64 * half, 64), sizeof(pairs));
      const auto even = reinterpret_cast<Lanes>(pairs << 16U);
      const auto odd = reinterpret_cast<Lanes>(pairs & 0xffff0000U);
      for (int row = 0; row < kRows; ++row) {
        sums[row][half] += even * x[row * stride + i];
        sums[row][half] += odd * x[row * stride + i + 1];
      }
    }
  }
}

template <int kRows>
[[gnu::always_inline]] inline void add_fp32(const float* x, std::int64_t stride, std::int64_t k,
                                            const std::byte* panel, Sums<kRows>& sums) {
  for (std::int64_t i = 0; i < k; ++i, panel += 2 * 64) {
    __builtin_prefetch(panel + kAheadBytes);
    __builtin_prefetch(panel + kAheadBytes + 64);
    for (int half = 0; half < 2; ++half) {
      Lanes weights;
      std::memcpy(&weights, __builtin_assume_aligned(panel + 64 * half, 64), sizeof(weights));
      for (int row = 0; row < kRows; ++row) sums[row][half] += weights * x[row * stride + i];
    }
  }
}

void write_row(const float* sums, std::int64_t cols, std::uint16_t* y) {
  narrow_row(sums, cols, y);
}
void write_row(const float* sums, std::int64_t cols, float* y) {
  std::memcpy(y, sums, static_cast<std::size_t>(cols) * sizeof(float));
}

// One block of rows times one panel.
template <int kRows, typename Element>
[[gnu::always_inline]] inline void block(const float* x, std::int64_t stride, std::int64_t k,
                                         const std::byte* panel, std::int64_t cols, Element* y,
                                         std::int64_t n) {
  Sums<kRows> sums{};
  if constexpr (sizeof(Element) == 2) {
    add_bf16<kRows>(x, stride, k, panel, sums);
  } else {
    add_fp32<kRows>(x, stride, k, panel, sums);
  }
  alignas(64) std::array<float, static_cast<std::size_t>(kWidth)> row_sums;
  for (int row = 0; row < kRows; ++row) {
    std::memcpy(row_sums.data(), sums[row], sizeof(row_sums));
    write_row(row_sums.data(), cols, y + row * n);
  }
}

template <typename Element>
[[gnu::always_inline]] inline void any_block(std::int64_t rows, const float* x, std::int64_t stride,
                                             std::int64_t k, const std::byte* panel,
                                             std::int64_t cols, Element* y, std::int64_t n) {
  switch (rows) {
    case 1:
      return block<1>(x, stride, k, panel, cols, y, n);
    case 2:
      return block<2>(x, stride, k, panel, cols, y, n);
    case 3:
      return block<3>(x, stride, k, panel, cols, y, n);
    case 4:
      return block<4>(x, stride, k, panel, cols, y, n);
    case 5:
      return block<5>(x, stride, k, panel, cols, y, n);
    default:
      return block<kBlockRows>(x, stride, k, panel, cols, y, n);
  }
}

EPSWEEP_MULTIVERSION
void multiply_bf16(std::int64_t rows, const float* x, std::int64_t stride, std::int64_t k,
                   const std::byte* panel, std::int64_t cols, std::uint16_t* y, std::int64_t n) {
  any_block(rows, x, stride, k, panel, cols, y, n);
}

EPSWEEP_MULTIVERSION
void multiply_fp32(std::int64_t rows, const float* x, std::int64_t stride, std::int64_t k,
                   const std::byte* panel, std::int64_t cols, float* y, std::int64_t n) {
  any_block(rows, x, stride, k, panel, cols, y, n);
}

// function(panel, columns of it that are written, first column).
template <typename Function>
void for_each_panel(const PanelRows& job, const Function& function) {
  for (std::int64_t index = 0; index < job.num_panels; ++index) {
    const std::int64_t col = index * kWidth;
    function(job.panels + index * job.panel_bytes, std::min(kWidth, job.cols - col), col);
  }
}

// The rows are widened once; weights with more than one block of rows come from the cache.
std::int64_t bf16_product(const PanelRows& job, std::byte* scratch) {
  const std::int64_t stride = job.k + job.k % 2;
  auto* const x = reinterpret_cast<float*>(scratch);
  const auto* in = static_cast<const std::uint16_t*>(job.x);
  auto* out = static_cast<std::uint16_t*>(job.y);
  for (std::int64_t row = 0; row < job.rows; ++row) {
    widen_row(in + row * job.k, job.k, x + row * stride);
    if (stride != job.k) x[row * stride + job.k] = 0;
  }
  for_each_panel(job, [&](const std::byte* panel, std::int64_t cols, std::int64_t col) {
    for (std::int64_t row = 0; row < job.rows; row += kBlockRows) {
      multiply_bf16(std::min(kBlockRows, job.rows - row), x + row * stride, stride, stride, panel,
                    cols, out + row * job.n + col, job.n);
    }
  });
  return job.rows;
}

std::int64_t fp32_product(const PanelRows& job, std::byte*) {
  const auto* x = static_cast<const float*>(job.x);
  auto* out = static_cast<float*>(job.y);
  for_each_panel(job, [&](const std::byte* panel, std::int64_t cols, std::int64_t col) {
    for (std::int64_t row = 0; row < job.rows; row += kBlockRows) {
      multiply_fp32(std::min(kBlockRows, job.rows - row), x + row * job.k, job.k, job.k, panel,
                    cols, out + row * job.n + col, job.n);
    }
  });
  return job.rows;
}

std::int64_t widened_bytes(const GemmShape& shape, std::int64_t rows) {
  return std::min(rows, kMostRows) * (shape.k + 1) * static_cast<std::int64_t>(sizeof(float));
}
std::int64_t no_bytes(const GemmShape&, std::int64_t) {
  return 0;
}

}  // namespace

PanelCode vector_code(DType dtype) {
  const bool bf16 = dtype == DType::bf16;
  return {.name = "vectors",
          .most_rows = kMostRows,
          .most_panels = INT64_MAX,
          .multiply = bf16 ? bf16_product : fp32_product,
          .scratch_bytes = bf16 ? widened_bytes : no_bytes};
}

}  // namespace epsweep
