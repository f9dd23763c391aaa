#include "workload/payload.h"

#include "base/error.h"

namespace epsweep {

double weight_amplitude(std::int64_t num_inputs) {
  EPS_EXPECT(num_inputs >= 1, "a dot product without inputs");
  double amplitude = 1;
  while (amplitude * amplitude * static_cast<double>(num_inputs) > 3) amplitude /= 2;
  return amplitude;
}

PayloadMatrix token_matrix(std::uint64_t seed, std::int64_t hidden_dim, std::int64_t step) {
  return {RandomStream(seed, Stream::token, static_cast<std::uint64_t>(step)), hidden_dim, 2.0};
}

PayloadMatrix gate_matrix(std::uint64_t seed, int layer, std::int64_t hidden_dim) {
  return {RandomStream(seed, Stream::gate_weight, static_cast<std::uint64_t>(layer)), hidden_dim,
          weight_amplitude(hidden_dim)};
}

PayloadMatrix selection_bias_matrix(std::uint64_t seed, int layer, int num_experts,
                                    double amplitude) {
  return {RandomStream(seed, Stream::selection_bias, static_cast<std::uint64_t>(layer)),
          num_experts, amplitude};
}

PayloadMatrix gate_up_matrix(std::uint64_t seed, int layer, int expert,
                             std::int64_t expert_io_dim) {
  return {RandomStream(seed, Stream::expert_gate_up, static_cast<std::uint64_t>(layer),
                       static_cast<std::uint64_t>(expert)),
          expert_io_dim, weight_amplitude(expert_io_dim)};
}

PayloadMatrix down_matrix(std::uint64_t seed, int layer, int expert, std::int64_t ffn_dim) {
  return {RandomStream(seed, Stream::expert_down, static_cast<std::uint64_t>(layer),
                       static_cast<std::uint64_t>(expert)),
          ffn_dim, weight_amplitude(ffn_dim)};
}

}  // namespace epsweep
