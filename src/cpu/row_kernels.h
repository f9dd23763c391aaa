// Loops over the elements of one row, compiled once per instruction set.
#pragma once

#include <cstdint>

namespace epsweep {

// out[c] = silu(gate[c]) * up[c].
void swiglu_row(const float* gate, const float* up, std::int64_t cols, float* out);
void swiglu_row(const std::uint16_t* gate, const std::uint16_t* up, std::int64_t cols,
                std::uint16_t* out);
// out[c] = max(in[c], 0)^2; NaN stays NaN.
void squared_relu_row(const float* in, std::int64_t cols, float* out);
void squared_relu_row(const std::uint16_t* in, std::int64_t cols, std::uint16_t* out);
// out[c] += weight * in[c].
void add_scaled_row(float weight, const float* in, std::int64_t cols, float* out);
void add_scaled_row(float weight, const std::uint16_t* in, std::int64_t cols, float* out);
// bf16 to fp32.
void widen_row(const std::uint16_t* in, std::int64_t cols, float* out);
// fp32 to bf16, to the nearest, ties to even.
void narrow_row(const float* in, std::int64_t cols, std::uint16_t* out);

// logits[e] of one block: sum over h of x[t * stride + h] * gate[e * stride + h], t < 4, e < 4.
// `block[t * 4 + e]` gets the sums.
void gate_block_4x4(const float* x, const float* gate, std::int64_t hidden_dim, float* block);
float gate_dot(const float* x, const float* gate, std::int64_t hidden_dim);

// In place over one token's logits.
void softmax_row(float* values, std::int64_t count);
void sigmoid_row(float* values, std::int64_t count);
void sqrtsoftplus_row(float* values, std::int64_t count);

}  // namespace epsweep
