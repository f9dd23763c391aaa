#include "workload/router.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep {
namespace {

// Beyond it no score changes any more, and differences and sums of two stay finite.
constexpr double kLargestLogit = 1e30;
// The sum of chosen scores is at least this (as in DeepSeek-V4's code): chosen scores that all
// underflow get weight 0 and not 0/0.
constexpr double kSmallestSum = 1e-20;

double finite(double logit) {
  return std::isnan(logit) ? -kLargestLogit : std::clamp(logit, -kLargestLogit, kLargestLogit);
}

// exp(z - max z) and its sum.
struct Exponentials {
  std::vector<double> values;
  double sum = 0;
};

Exponentials exponentials(std::span<const double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  Exponentials result;
  for (const double logit : logits) result.values.push_back(std::exp(logit - largest));
  result.sum = std::accumulate(result.values.begin(), result.values.end(), 0.0);
  return result;
}

// log(1 + exp(z)) without overflow.
double softplus(double logit) {
  return std::max(logit, 0.0) + std::log1p(std::exp(-std::abs(logit)));
}

std::vector<double> scores(Scoring scoring, std::span<const double> logits) {
  std::vector<double> result(logits.begin(), logits.end());
  switch (scoring) {
    case Scoring::topk_softmax:
      break;
    case Scoring::softmax: {
      Exponentials all = exponentials(logits);
      for (double& value : all.values) value /= all.sum;
      return std::move(all.values);
    }
    case Scoring::sigmoid:
      for (double& value : result) value = 1 / (1 + std::exp(-value));
      break;
    case Scoring::sqrtsoftplus:
      for (double& value : result) value = std::sqrt(softplus(value));
      break;
  }
  return result;
}

std::vector<double> finite_row(std::span<const double> logits) {
  std::vector<double> row;
  row.reserve(logits.size());
  for (const double logit : logits) row.push_back(finite(logit));
  return row;
}

}  // namespace

ModelRouter::ModelRouter(const ModelShape& model, std::vector<double> selection_bias)
    : shape_(model.router),
      num_experts_(static_cast<std::size_t>(model.num_experts)),
      top_k_(static_cast<std::size_t>(model.top_k)),
      selection_bias_(std::move(selection_bias)) {
  if (const auto problem = find_router_problem(model)) {
    throw ConfigError(fmt::format("router of {}: {}", model.name, problem->text));
  }
  if (!selection_bias_.empty() && selection_bias_.size() != num_experts_) {
    throw ConfigError(fmt::format("router of {}: {} selection biases for {} experts", model.name,
                                  selection_bias_.size(), num_experts_));
  }
}

std::vector<double> ModelRouter::selection_values(std::span<const double> logits) const {
  std::vector<double> values = finite_row(logits);
  if (!shape_.selects_by_logit()) values = scores(shape_.scoring, values);
  for (std::size_t e = 0; e < selection_bias_.size(); ++e) values[e] += selection_bias_[e];
  return values;
}

void ModelRouter::choose(std::span<const double> logits, std::span<std::int32_t> experts) const {
  EPS_EXPECT(logits.size() == num_experts_ && experts.size() == top_k_,
             "logits or choice of another length than the router's");
  const std::vector<double> values = selection_values(logits);
  const GroupLimit limit = shape_.group_limit();
  GroupScratch<double> scratch;
  scratch.reserve(limit);
  limited_top_k(std::span<const double>(values), limit, scratch, experts);
}

std::vector<double> ModelRouter::weights(std::span<const double> logits,
                                         std::span<const std::int32_t> experts) const {
  EPS_EXPECT(logits.size() == num_experts_, "logits of another length than the router's");
  const std::vector<double> all = scores(shape_.scoring, finite_row(logits));
  std::vector<double> chosen;
  for (const std::int32_t expert : experts) chosen.push_back(all[static_cast<std::size_t>(expert)]);
  if (shape_.scoring == Scoring::topk_softmax) chosen = scores(Scoring::softmax, chosen);
  double factor = shape_.scale;
  if (shape_.renormalize) {
    factor /= std::max(std::accumulate(chosen.begin(), chosen.end(), 0.0), kSmallestSum);
  }
  for (double& weight : chosen) weight *= factor;
  return chosen;
}

RouterChoice ModelRouter::route(std::span<const double> logits) const {
  RouterChoice choice;
  choice.experts.resize(top_k_);
  choose(logits, choice.experts);
  choice.weights = weights(logits, choice.experts);
  return choice;
}

}  // namespace epsweep
