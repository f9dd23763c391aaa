#include "cpu/row_kernels.h"

#include <array>
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

// 16 accumulators of 16 lanes: every loaded vector is used four times.
EPSWEEP_MULTIVERSION
void gate_block_4x4(const float* x, const float* gate, std::int64_t hidden_dim, float* block) {
  std::array<Lanes, 16> sums{};
  std::int64_t h = 0;
  for (; h + kLanes <= hidden_dim; h += kLanes) {
    std::array<Lanes, 4> a, b;
    for (std::size_t i = 0; i < 4; ++i) {
      std::memcpy(&a[i], x + static_cast<std::int64_t>(i) * hidden_dim + h, sizeof(Lanes));
      std::memcpy(&b[i], gate + static_cast<std::int64_t>(i) * hidden_dim + h, sizeof(Lanes));
    }
    for (std::size_t t = 0; t < 4; ++t) {
      for (std::size_t e = 0; e < 4; ++e) sums[t * 4 + e] += a[t] * b[e];
    }
  }
  for (std::int64_t t = 0; t < 4; ++t) {
    for (std::int64_t e = 0; e < 4; ++e) {
      float sum = 0;
      for (int lane = 0; lane < kLanes; ++lane)
        sum += sums[static_cast<std::size_t>(t * 4 + e)][lane];
      for (std::int64_t i = h; i < hidden_dim; ++i) {
        sum += x[t * hidden_dim + i] * gate[e * hidden_dim + i];
      }
      block[t * 4 + e] = sum;
    }
  }
}

EPSWEEP_MULTIVERSION
float gate_dot(const float* x, const float* gate, std::int64_t hidden_dim) {
  std::array<Lanes, 4> sums{};
  std::int64_t h = 0;
  for (; h + 4 * kLanes <= hidden_dim; h += 4 * kLanes) {
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
  for (; h < hidden_dim; ++h) sum += x[h] * gate[h];
  return sum;
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
