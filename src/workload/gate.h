// The router of one layer with its generated weights, which every rank can ask about any token of
// a step.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/model_shape.h"
#include "workload/payload.h"
#include "workload/router.h"

namespace epsweep {

// The bias of the layer's experts, [num_experts]; empty if the model has none. Uniform within an
// eighth of what scores usually are: 1/16 for sigmoid and sqrtsoftplus, 1/8 for logits, 1/(8 E) for
// softmax, each rounded down to a power of two. That decides between experts with near scores and
// leaves the rest to the token.
std::vector<float> layer_selection_bias(std::uint64_t seed, int layer, const ModelShape& model);

// Holds the gate rows: 4 * num_experts * hidden_dim bytes.
class LayerGate {
 public:
  // Throws ConfigError where the model's shape does not make a router.
  LayerGate(std::uint64_t seed, int layer, const ModelShape& model, std::int64_t step = 0);

  // Token row times gate rows: 2 * num_experts * hidden_dim operations. Exact: values have eight
  // bits, so nothing is rounded for any hidden_dim a model may have.
  std::vector<double> logits(std::int64_t token) const;
  const ModelRouter& router() const { return router_; }

 private:
  PayloadMatrix tokens_;
  std::size_t hidden_dim_, num_experts_;
  std::vector<float> gate_;  // [num_experts][hidden_dim]
  ModelRouter router_;
};

}  // namespace epsweep
