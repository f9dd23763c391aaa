// Rows that are written past the caches where the processor can, for results larger than what a
// cache would keep until they are read. Other threads see them after their next meeting with a
// thread that called stream_fence() after it.
#pragma once

#include <cstdint>

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

}  // namespace epsweep
