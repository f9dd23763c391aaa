#include "workload/gate.h"

#include <bit>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "workload/dot.h"

namespace epsweep {
namespace {

double bias_amplitude(const ModelShape& model) {
  switch (model.router.scoring) {
    case Scoring::softmax:
      return 0.125 / static_cast<double>(std::bit_ceil(static_cast<unsigned>(model.num_experts)));
    case Scoring::topk_softmax:
      return 0.125;
    case Scoring::sigmoid:
    case Scoring::sqrtsoftplus:
      break;
  }
  return 0.0625;
}

ModelRouter make_router(std::uint64_t seed, int layer, const ModelShape& model) {
  const std::vector<float> bias = layer_selection_bias(seed, layer, model);
  return ModelRouter(model, std::vector<double>(bias.begin(), bias.end()));
}

}  // namespace

std::vector<float> layer_selection_bias(std::uint64_t seed, int layer, const ModelShape& model) {
  if (!model.router.selection_bias) return {};
  std::vector<float> bias(static_cast<std::size_t>(model.num_experts));
  selection_bias_matrix(seed, layer, model.num_experts, bias_amplitude(model))
      .fill_row(0, std::span(bias));
  return bias;
}

LayerGate::LayerGate(std::uint64_t seed, int layer, const ModelShape& model, std::int64_t step)
    : tokens_(token_matrix(seed, model.hidden_dim, step)),
      hidden_dim_(static_cast<std::size_t>(model.hidden_dim)),
      num_experts_(static_cast<std::size_t>(model.num_experts)),
      router_(make_router(seed, layer, model)) {
  if (model.hidden_dim < 1) {
    throw ConfigError(fmt::format("router of {}: hidden_dim is {}", model.name, model.hidden_dim));
  }
  const PayloadMatrix gate = gate_matrix(seed, layer, model.hidden_dim);
  gate_.resize(num_experts_ * hidden_dim_);
  for (std::size_t e = 0; e < num_experts_; ++e) {
    gate.fill_row(static_cast<std::int64_t>(e),
                  std::span(gate_).subspan(e * hidden_dim_, hidden_dim_));
  }
}

std::vector<double> LayerGate::logits(std::int64_t token) const {
  std::vector<float> row(hidden_dim_);
  tokens_.fill_row(token, std::span(row));
  std::vector<double> logits(num_experts_);
  for (std::size_t e = 0; e < num_experts_; ++e) {
    logits[e] = dot(gate_.data() + e * hidden_dim_, row.data(), hidden_dim_);
  }
  return logits;
}

}  // namespace epsweep
