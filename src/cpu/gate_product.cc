#include "cpu/gate_product.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace epsweep {
namespace {

// As in row_kernels.cc: 16 lanes that never leave a function.
using Lanes = float __attribute__((vector_size(64)));
using Quad = float __attribute__((vector_size(16)));
constexpr std::int64_t kLanes = 16;
// Columns of four gate rows that stay in a level-1 cache (16 KB) while the rows of x pass by.
constexpr std::int64_t kCols = 1024;
constexpr std::int64_t kBlock = 4 * kLanes;  // sums of one token and four experts

// Adds columns [0, cols) of four rows of each to sums [4 tokens][4 experts][16 lanes]: 16 vectors
// of sums, of which every loaded vector feeds four.
[[gnu::always_inline]] inline void add_block(const float* x, const float* gate, std::int64_t stride,
                                             std::int64_t cols, float* sums) {
  std::array<Lanes, 16> block;
  std::memcpy(block.data(), sums, sizeof(block));
  for (std::int64_t h = 0; h < cols; h += kLanes) {
    std::array<Lanes, 4> a, b;
    for (std::size_t i = 0; i < 4; ++i) {
      std::memcpy(&a[i], x + static_cast<std::int64_t>(i) * stride + h, sizeof(Lanes));
      std::memcpy(&b[i], gate + static_cast<std::int64_t>(i) * stride + h, sizeof(Lanes));
    }
    for (std::size_t t = 0; t < 4; ++t) {
      for (std::size_t e = 0; e < 4; ++e) block[t * 4 + e] += a[t] * b[e];
    }
  }
  std::memcpy(sums, block.data(), sizeof(block));
}

// The sum of 16 lanes as four partial sums.
[[gnu::always_inline]] inline void fold(const float* lanes, Quad& out) {
  std::array<Quad, 4> part;
  std::memcpy(part.data(), lanes, sizeof(part));
  out = (part[0] + part[1]) + (part[2] + part[3]);
}

// The sums of four times 16 lanes.
[[gnu::always_inline]] inline void fold_four(const float* sums, float* out) {
  using Index = std::int32_t __attribute__((vector_size(16)));
  constexpr Index kLower = {0, 4, 1, 5}, kUpper = {2, 6, 3, 7};
  constexpr Index kFirst = {0, 1, 4, 5}, kLast = {2, 3, 6, 7};
  std::array<Quad, 4> of;
  for (std::size_t e = 0; e < 4; ++e) fold(sums + static_cast<std::int64_t>(e) * kLanes, of[e]);
  const Quad ab = __builtin_shuffle(of[0], of[1], kLower) + __builtin_shuffle(of[0], of[1], kUpper);
  const Quad cd = __builtin_shuffle(of[2], of[3], kLower) + __builtin_shuffle(of[2], of[3], kUpper);
  const Quad total = __builtin_shuffle(ab, cd, kFirst) + __builtin_shuffle(ab, cd, kLast);
  std::memcpy(out, &total, sizeof(total));
}

// A product of two rows, where there are fewer than four.
[[gnu::always_inline]] inline float dot(const float* x, const float* gate, std::int64_t hidden) {
  std::array<Lanes, 4> sums{};
  std::int64_t h = 0;
  for (; h + 4 * kLanes <= hidden; h += 4 * kLanes) {
    for (std::size_t i = 0; i < 4; ++i) {
      Lanes a, b;
      std::memcpy(&a, x + h + static_cast<std::int64_t>(i) * kLanes, sizeof(Lanes));
      std::memcpy(&b, gate + h + static_cast<std::int64_t>(i) * kLanes, sizeof(Lanes));
      sums[i] += a * b;
    }
  }
  const Lanes total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += total[lane];
  for (; h < hidden; ++h) sum += x[h] * gate[h];
  return sum;
}

// Four experts and `tokens`, a multiple of four.
[[gnu::always_inline]] inline void multiply_panel(const GateProduct& product, std::int64_t expert,
                                                  std::int64_t tokens, float* sums, float* logits) {
  const std::int64_t hidden = product.hidden, whole = hidden / kLanes * kLanes;
  const float* const gate = product.gate + expert * hidden;
  std::fill_n(sums, tokens * kBlock, 0.0F);
  for (std::int64_t begin = 0; begin < whole; begin += kCols) {
    const std::int64_t cols = std::min(kCols, whole - begin);
    for (std::int64_t t = 0; t < tokens; t += 4) {
      add_block(product.x + t * hidden + begin, gate + begin, hidden, cols, sums + t * kBlock);
    }
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    float* const out = logits + t * product.experts + expert;
    fold_four(sums + t * kBlock, out);
    for (std::int64_t e = 0; e < 4; ++e) {
      for (std::int64_t h = whole; h < hidden; ++h) {
        out[e] += product.x[t * hidden + h] * gate[e * hidden + h];
      }
    }
  }
}

}  // namespace

EPSWEEP_MULTIVERSION
void gate_product(const GateProduct& product, float* sums, float* logits) {
  const std::int64_t tokens = product.tokens / 4 * 4, experts = product.experts / 4 * 4;
  for (std::int64_t e = 0; e < experts; e += 4) multiply_panel(product, e, tokens, sums, logits);
  for (std::int64_t t = 0; t < product.tokens; ++t) {
    for (std::int64_t e = t < tokens ? experts : 0; e < product.experts; ++e) {
      logits[t * product.experts + e] =
          dot(product.x + t * product.hidden, product.gate + e * product.hidden, product.hidden);
    }
  }
}

}  // namespace epsweep
