// Token rows, gates and expert weights: matrices of payload values (base/payload_stream.h).
#pragma once

#include <cstdint>
#include <span>

#include "base/payload_stream.h"

namespace epsweep {

// Row `row` of a matrix with `cols` columns is the values at indices [row * cols, (row + 1) * cols)
// of its stream.
class PayloadMatrix {
 public:
  // Uniform in (-amplitude, amplitude); amplitude is a power of two.
  PayloadMatrix(RandomStream words, std::int64_t cols, double amplitude)
      : stream_{words, static_cast<float>(amplitude / 256)}, cols_(cols) {}

  std::int64_t cols() const { return cols_; }
  const PayloadStream& stream() const { return stream_; }
  // Writes columns 0..out.size()-1 of a row, out.size() <= cols; bfloat16 as bit patterns.
  template <typename Element>
  void fill_row(std::int64_t row, std::span<Element> out) const {
    fill_payload(stream_, row * cols_, out);
  }

 private:
  PayloadStream stream_;
  std::int64_t cols_;
};

// The largest power of two not above 1/sqrt(num_inputs/3): keeps the variance of a dot product of
// num_inputs uniform weights with unit-variance inputs near 1 (between 1/4 and 1).
double weight_amplitude(std::int64_t num_inputs);

// x[token][h]: input rows of a layer, [C][hidden_dim]; amplitude 2, so the variance is 4/3. Other
// steps of the request stream have other tokens.
PayloadMatrix token_matrix(std::uint64_t seed, std::int64_t hidden_dim, std::int64_t step = 0);
// [num_experts][hidden_dim]; logits have a standard deviation between 0.57 and 1.16.
PayloadMatrix gate_matrix(std::uint64_t seed, int layer, std::int64_t hidden_dim);
// [1][num_experts]: what the router adds to the scores it selects by.
PayloadMatrix selection_bias_matrix(std::uint64_t seed, int layer, int num_experts,
                                    double amplitude);
// [gate_up_cols][expert_io_dim], rows 0..ffn_dim-1 gate and the rest up (or up alone).
PayloadMatrix gate_up_matrix(std::uint64_t seed, int layer, int expert, std::int64_t expert_io_dim);
// [expert_io_dim][ffn_dim]
PayloadMatrix down_matrix(std::uint64_t seed, int layer, int expert, std::int64_t ffn_dim);

}  // namespace epsweep
