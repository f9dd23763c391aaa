// The loops behind row_kernels.h and row_streams.h, which compile them once per instruction set and
// differ in how a line is stored: Put stores `bytes` (64 or 128) from a local array.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bfloat16.h"
#include "cpu/row_kernels.h"
#include "cpu/vector_math.h"

namespace epsweep {

// 16 lanes; narrower machines split it. Only ever local, so its calling convention never matters.
using Lanes = float __attribute__((vector_size(64)));
using Words = std::uint32_t __attribute__((vector_size(64)));
inline constexpr std::int64_t kLanes = 16;
// The upper of the two bf16 of a word. Loops over bf16 widen either half of a word by leaving the
// other out, which costs a vector machine half of what unpacking does.
inline constexpr std::uint32_t kUpper = 0xffff0000U;
// Elements ahead at which the lines of a row are asked for, into the level-2 cache: far enough that
// they are there in time, which the level-1 cache would be too small for.
inline constexpr std::int64_t kAheadCols = 1536;
inline constexpr int kReads = 0, kLevel2 = 2;  // arguments of __builtin_prefetch

struct PutPlainly {
  template <std::size_t bytes>
  static void put(const void* line, void* to) {
    std::memcpy(to, line, bytes);
  }
};

template <typename Function>
[[gnu::always_inline]] inline std::uint32_t of_both_halves(std::uint32_t a, std::uint32_t b,
                                                           const Function& function) {
  return (function(a << 16, b << 16) >> 16) | (function(a & kUpper, b & kUpper) & kUpper);
}

// out[c] = function(a.row[c], b.row[c]), as the upper half of a word; the begins of the next rows
// are fetched.
template <typename Put, typename Function>
[[gnu::always_inline]] inline void map_row(const BusyRow& a, const BusyRow& b, std::int64_t cols,
                                           std::uint16_t* out, const Function& function) {
  constexpr std::int64_t kLine = 32;
  const std::int64_t ahead = std::min(kAheadCols, cols);
  std::int64_t c = 0;
  for (; c + kLine <= cols; c += kLine) {
    const std::int64_t at = c + ahead;
    __builtin_prefetch(at < cols ? a.row + at : a.next + (at - cols), kReads, kLevel2);
    __builtin_prefetch(at < cols ? b.row + at : b.next + (at - cols), kReads, kLevel2);
    alignas(64) std::uint32_t results[kLine / 2];
    for (std::int64_t w = 0; w < kLine / 2; ++w) {
      std::uint32_t first, second;
      std::memcpy(&first, a.row + c + 2 * w, sizeof(first));
      std::memcpy(&second, b.row + c + 2 * w, sizeof(second));
      results[w] = of_both_halves(first, second, function);
    }
    Put::template put<sizeof(results)>(results, out + c);
  }
  for (; c < cols; ++c) {
    out[c] = static_cast<std::uint16_t>(
        function(std::uint32_t{a.row[c]} << 16, std::uint32_t{b.row[c]} << 16) >> 16);
  }
}

// silu(gate) * up. Rounded to the nearest; exact ties, which hardly any product with a sigmoid is,
// go away from zero. NaN stays NaN: no operand has low bits that could carry.
[[gnu::always_inline]] inline std::uint32_t silu_product_bits(std::uint32_t gate,
                                                              std::uint32_t up) {
  const auto value = std::bit_cast<float>(gate);
  const float product = value * coarse_sigmoid(value) * std::bit_cast<float>(up);
  return std::bit_cast<std::uint32_t>(product) + 0x8000U;
}

template <typename Put>
[[gnu::always_inline]] inline void swiglu(const BusyRow& gate, const BusyRow& up, std::int64_t cols,
                                          std::uint16_t* out) {
  map_row<Put>(gate, up, cols, out, silu_product_bits);
}

// 32 elements as two vectors, of bf16 the lower and the upper halves; store_pair() puts them in
// order again.
[[gnu::always_inline]] inline void load_pair(const float* in, Lanes& first, Lanes& second) {
  std::memcpy(&first, in, sizeof(first));
  std::memcpy(&second, in + kLanes, sizeof(second));
}

[[gnu::always_inline]] inline void load_pair(const std::uint16_t* in, Lanes& lower, Lanes& upper) {
  Words words;
  std::memcpy(&words, in, sizeof(words));
  lower = reinterpret_cast<Lanes>(words << 16);
  upper = reinterpret_cast<Lanes>(words & kUpper);
}

template <typename Put>
[[gnu::always_inline]] inline void store_pair(const float*, const Lanes& first, const Lanes& second,
                                              float* out) {
  const Lanes both[2] = {first, second};
  Put::template put<sizeof(both)>(both, out);
}

template <typename Put>
[[gnu::always_inline]] inline void store_pair(const std::uint16_t*, const Lanes& lower,
                                              const Lanes& upper, float* out) {
  constexpr Words kFirst = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
  const Lanes both[2] = {__builtin_shuffle(lower, upper, kFirst),
                         __builtin_shuffle(lower, upper, kFirst + 8U)};
  Put::template put<sizeof(both)>(both, out);
}

[[gnu::always_inline]] inline float element(float value) {
  return value;
}

[[gnu::always_inline]] inline float element(std::uint16_t value) {
  return float_of_bf16(value);
}

// Asks for the columns [begin, begin + 32) of the rows that are needed later.
template <typename Element>
[[gnu::always_inline]] inline void fetch_columns(const RowSum<Element>& sum, std::int64_t begin) {
  constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(Element));
  for (const std::int32_t row : sum.ahead_rows) {
    for (std::int64_t c = begin; c < begin + 2 * kLanes; c += kLine) {
      __builtin_prefetch(sum.ahead + row * sum.stride + c);
    }
  }
}

// Two vectors of sums stay in registers while all rows are added.
template <typename Put, typename Element>
[[gnu::always_inline]] inline void add_rows(const RowSum<Element>& sum, std::int64_t cols,
                                            float* out) {
  const auto weight = [&](std::size_t j) { return sum.weights ? sum.weights[j] : 1.0F; };
  std::int64_t c = 0;
  for (; c + 2 * kLanes <= cols; c += 2 * kLanes) {
    fetch_columns(sum, c);
    Lanes first{}, second{};
    for (std::size_t j = 0; j < sum.rows.size(); ++j) {
      Lanes a, b;
      load_pair(sum.in + sum.rows[j] * sum.stride + c, a, b);
      first += weight(j) * a;
      second += weight(j) * b;
    }
    store_pair<Put>(sum.in, first, second, out + c);
  }
  for (; c < cols; ++c) {
    float total = 0;
    for (std::size_t j = 0; j < sum.rows.size(); ++j) {
      total += weight(j) * element(sum.in[sum.rows[j] * sum.stride + c]);
    }
    out[c] = total;
  }
}

}  // namespace epsweep
