// What a model's router decides, in double precision: the one definition that traces, the check and
// the tests of the timed routers share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/model_shape.h"

namespace epsweep {

struct RouterChoice {
  std::vector<std::int32_t> experts;  // [top_k], best first
  std::vector<double> weights;        // [top_k]
};

// With z the logits of one token:
//   score s     softmax: softmax over all z; sigmoid: 1 / (1 + exp(-z));
//               sqrtsoftplus: sqrt(log(1 + exp(z))); topk_softmax: z itself
//   selection   the top_k largest of s + bias, ties to the lower expert id. Of grouped experts only
//               those in the topk_groups best groups, ties to the lower group; a group is worth its
//               largest s, or the sum of its two largest s + bias where there is a bias.
//   weight      scale * s, without the bias, divided by the sum over the chosen if renormalised;
//               topk_softmax: scale * softmax over the chosen z. Llama-4 is sigmoid with top_k 1.
// Without a bias the order of s is that of z, so the selection compares z: scores that round to the
// same number do not become ties.
class ModelRouter {
 public:
  // The bias takes part in the selection only: [num_experts], or empty for none.
  // Throws ConfigError where the shape breaks a rule, such as kept groups with fewer than top_k
  // experts, or a bias of another length.
  explicit ModelRouter(const ModelShape& model, std::vector<double> selection_bias = {});

  // logits: [num_experts]. Magnitudes are cut at 1e30 and NaN counts as -1e30, so that weights are
  // numbers and experts distinct whatever comes in.
  RouterChoice route(std::span<const double> logits) const;
  void choose(std::span<const double> logits, std::span<std::int32_t> experts) const;
  // Weights of experts that were prescribed.
  std::vector<double> weights(std::span<const double> logits,
                              std::span<const std::int32_t> experts) const;

 private:
  std::vector<double> selection_values(std::span<const double> logits) const;

  RouterShape shape_;
  std::size_t num_experts_, top_k_;
  std::vector<double> selection_bias_;
};

}  // namespace epsweep
