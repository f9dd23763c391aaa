// Loops over the elements of one row, compiled once per instruction set.
#pragma once

#include <cstdint>
#include <span>

namespace epsweep {

// A row to read now, and the one that is read after it, of as many columns: its begin is fetched
// meanwhile. It may be the same row, and lie where nothing is.
struct BusyRow {
  const std::uint16_t* row = nullptr;
  const std::uint16_t* next = nullptr;
};

// out[c] = silu(gate[c]) * up[c].
void swiglu_row(const float* gate, const float* up, std::int64_t cols, float* out);
void swiglu_row(const BusyRow& gate, const BusyRow& up, std::int64_t cols, std::uint16_t* out);
// out[c] = max(in[c], 0)^2; NaN stays NaN.
void squared_relu_row(const float* in, std::int64_t cols, float* out);
void squared_relu_row(const BusyRow& in, std::int64_t cols, std::uint16_t* out);

// Rows to add up, and lines to fetch meanwhile.
template <typename Element>
struct RowSum {
  const Element* in = nullptr;              // the first column of row 0
  std::int64_t stride = 0;                  // elements from row to row
  std::span<const std::int32_t> rows = {};  // added in this order
  const float* weights = nullptr;           // one each; null for ones
  const Element* ahead = nullptr;           // as many columns from here are fetched
  std::span<const std::int32_t> ahead_rows = {};
};
// out[c] = sum over j of weights[j] * in[rows[j] * stride + c] in fp32; zeros for no rows.
void sum_rows(const RowSum<float>& sum, std::int64_t cols, float* out);
void sum_rows(const RowSum<std::uint16_t>& sum, std::int64_t cols, float* out);
// bf16 to fp32.
void widen_row(const std::uint16_t* in, std::int64_t cols, float* out);
// fp32 to bf16, to the nearest, ties to even.
void narrow_row(const float* in, std::int64_t cols, std::uint16_t* out);

// In place over one token's logits.
void softmax_row(float* values, std::int64_t count);
void sigmoid_row(float* values, std::int64_t count);
void sqrtsoftplus_row(float* values, std::int64_t count);

}  // namespace epsweep
