// Rows that are written past the caches where the processor can, for results larger than what a
// cache would keep until they are read. Other threads see them after their next meeting with a
// thread that called stream_fence() after it.
#pragma once

#include <cstdint>
#include <cstring>

#include "cpu/row_kernels.h"

namespace epsweep {

// A copy of any size between any addresses that do not overlap. The begin of the row at `next`,
// which may be the same, is fetched meanwhile.
void stream_row(const void* from, const void* next, void* to, std::int64_t bytes);
// As swiglu_row() and sum_rows(); `out` at any address, but past the caches only at multiples of 16
// bytes.
void stream_swiglu_row(const BusyRow& gate, const BusyRow& up, std::int64_t cols,
                       std::uint16_t* out);
void stream_sum_rows(const RowSum<float>& sum, std::int64_t cols, float* out);
void stream_sum_rows(const RowSum<std::uint16_t>& sum, std::int64_t cols, float* out);
void stream_fence();

// Below this a result may still be in a cache when it is read.
inline constexpr std::int64_t kStreamFrom = std::int64_t{4} << 20;

enum class Stores { cached, streamed };

// For a result of so many bytes.
inline Stores stores_of(std::int64_t bytes) {
  return bytes < kStreamFrom ? Stores::cached : Stores::streamed;
}

// As stream_row(), either way.
inline void write_row(Stores stores, const void* from, const void* next, void* to,
                      std::int64_t bytes) {
  if (stores == Stores::streamed) return stream_row(from, next, to, bytes);
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace epsweep
