// Processors without streaming stores.
#include <cstring>

#include "cpu/row_streams.h"

namespace epsweep {

void stream_row(const void* from, const void* /*next*/, void* to, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void stream_swiglu_row(const BusyRow& gate, const BusyRow& up, std::int64_t cols,
                       std::uint16_t* out) {
  swiglu_row(gate, up, cols, out);
}

void stream_sum_rows(const RowSum<float>& sum, std::int64_t cols, float* out) {
  sum_rows(sum, cols, out);
}

void stream_sum_rows(const RowSum<std::uint16_t>& sum, std::int64_t cols, float* out) {
  sum_rows(sum, cols, out);
}

void stream_fence() {}

}  // namespace epsweep
