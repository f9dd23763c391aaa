#include "cpu/row_kernels.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/bfloat16.h"
#include "cpu/row_loops.h"
#include "cpu/vector_math.h"

// EPSWEEP_MULTIVERSION comes from CMakeLists.txt: the compiler makes one copy of each function per
// instruction set and the loader picks one, so the binary still starts on any x86-64.

namespace epsweep {
namespace {

inline float silu_product(float gate, float up) {
  return gate * fast_sigmoid(gate) * up;
}

inline float squared_relu(float value) {
  const float positive = value < 0.0F ? 0.0F : value;
  return positive * positive;
}

}  // namespace

EPSWEEP_MULTIVERSION
void swiglu_row(const float* gate, const float* up, std::int64_t cols, float* out) {
  for (std::int64_t c = 0; c < cols; ++c) out[c] = silu_product(gate[c], up[c]);
}

EPSWEEP_MULTIVERSION
void swiglu_row(const BusyRow& gate, const BusyRow& up, std::int64_t cols, std::uint16_t* out) {
  swiglu<PutPlainly>(gate, up, cols, out);
}

EPSWEEP_MULTIVERSION
void squared_relu_row(const float* in, std::int64_t cols, float* out) {
  for (std::int64_t c = 0; c < cols; ++c) out[c] = squared_relu(in[c]);
}

EPSWEEP_MULTIVERSION
void squared_relu_row(const BusyRow& in, std::int64_t cols, std::uint16_t* out) {
  map_row<PutPlainly>(in, in, cols, out, [](std::uint32_t value, std::uint32_t) {
    const auto square = std::bit_cast<std::uint32_t>(squared_relu(std::bit_cast<float>(value)));
    return square + 0x7fffU + ((square >> 16) & 1U);  // as bf16_of_float() for such NaNs
  });
}

EPSWEEP_MULTIVERSION
void sum_rows(const RowSum<float>& sum, std::int64_t cols, float* out) {
  add_rows<PutPlainly>(sum, cols, out);
}

EPSWEEP_MULTIVERSION
void sum_rows(const RowSum<std::uint16_t>& sum, std::int64_t cols, float* out) {
  add_rows<PutPlainly>(sum, cols, out);
}

EPSWEEP_MULTIVERSION
void widen_row(const std::uint16_t* in, std::int64_t cols, float* out) {
  for (std::int64_t c = 0; c < cols; ++c) out[c] = float_of_bf16(in[c]);
}

EPSWEEP_MULTIVERSION
void narrow_row(const float* in, std::int64_t cols, std::uint16_t* out) {
  for (std::int64_t c = 0; c < cols; ++c) out[c] = bf16_of_float(in[c]);
}

EPSWEEP_MULTIVERSION
void softmax_row(float* values, std::int64_t count) {
  float largest = values[0];
  for (std::int64_t i = 1; i < count; ++i) largest = values[i] > largest ? values[i] : largest;
  for (std::int64_t i = 0; i < count; ++i) values[i] = fast_exp(values[i] - largest);
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += values[i];
  const float scale = 1.0F / sum;
  for (std::int64_t i = 0; i < count; ++i) values[i] *= scale;
}

EPSWEEP_MULTIVERSION
void sigmoid_row(float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = fast_sigmoid(values[i]);
}

EPSWEEP_MULTIVERSION
void sqrtsoftplus_row(float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = std::sqrt(fast_softplus(values[i]));
}

}  // namespace epsweep
