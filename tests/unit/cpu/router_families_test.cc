// The timed router against the reference router of workload/, for every family.
#include <algorithm>
#include <cmath>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cpu/cpu_backend.h"
#include "device/token_ops.h"
#include "support/host_view.h"
#include "workload/router.h"

namespace epsweep {
namespace {

constexpr std::int64_t kTokens = 70, kHidden = 48;

struct Family {
  std::string name;
  ScoreFunction score;
  int num_experts, top_k;
  RouterShape router;
};

void PrintTo(const Family& family, std::ostream* out) {
  *out << family.name;
}

std::vector<Family> families() {
  using S = Scoring;
  using F = ScoreFunction;
  return {
      {"mixtral", F::softmax, 8, 2, {.scoring = S::softmax, .renormalize = true}},
      {"olmoe", F::softmax, 64, 8, {.scoring = S::softmax}},
      {"gpt_oss", F::topk_softmax, 32, 4, {.scoring = S::topk_softmax, .renormalize = true}},
      {"deepseek_v2",
       F::softmax,
       160,
       6,
       {.scoring = S::softmax, .scale = 16, .num_groups = 8, .topk_groups = 3}},
      {"deepseek_v3",
       F::sigmoid,
       256,
       8,
       {.scoring = S::sigmoid,
        .renormalize = true,
        .scale = 2.5,
        .num_groups = 8,
        .topk_groups = 4,
        .selection_bias = true}},
      {"kimi_k2",
       F::sigmoid,
       384,
       8,
       {.scoring = S::sigmoid, .renormalize = true, .scale = 2.827, .selection_bias = true}},
      {"deepseek_v4",
       F::sqrtsoftplus,
       256,
       6,
       {.scoring = S::sqrtsoftplus, .renormalize = true, .scale = 1.5, .selection_bias = true}},
      {"llama4", F::sigmoid, 128, 1, {.scoring = S::sigmoid}},
      {"ernie",
       F::softmax,
       64,
       6,
       {.scoring = S::softmax, .renormalize = true, .selection_bias = true}},
  };
}

Buffer floats(const std::vector<float>& values) {
  Buffer buffer = make_cpu_buffer(static_cast<std::int64_t>(values.size() * sizeof(float)));
  std::copy(values.begin(), values.end(), buffer.as<float>().begin());
  return buffer;
}

std::vector<float> random_floats(std::int64_t count, std::uint64_t key, double range) {
  const RandomStream random(23, Stream::test, key);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(
        static_cast<float>(range * (2 * random.uniform(static_cast<std::uint64_t>(i)) - 1)));
  }
  return values;
}

class CpuRouterFamilies : public testing::TestWithParam<Family> {
 protected:
  std::vector<double> logits(std::int64_t token) const {
    std::vector<double> row;
    for (int e = 0; e < GetParam().num_experts; ++e) {
      double sum = 0;
      for (std::int64_t h = 0; h < kHidden; ++h) {
        sum += static_cast<double>(x_[static_cast<std::size_t>(token * kHidden + h)]) *
               static_cast<double>(gate_[static_cast<std::size_t>(e * kHidden + h)]);
      }
      row.push_back(sum);
    }
    return row;
  }

  const std::vector<float> x_ = random_floats(kTokens * kHidden, 1, 2);
  const std::vector<float> gate_ = random_floats(GetParam().num_experts * kHidden, 2, 0.2);
};

ModelShape model_of(const Family& family) {
  ModelShape model;
  model.num_experts = family.num_experts;
  model.top_k = family.top_k;
  model.router = family.router;
  return model;
}

// Random logits of distinct experts are far enough apart that rounding to fp32 changes next to
// none of some hundred choices.
TEST_P(CpuRouterFamilies, ChoosesAndWeighsLikeTheReference) {
  const Family& family = GetParam();
  const bool has_bias = family.router.selection_bias;
  const std::vector<float> bias =
      has_bias ? random_floats(family.num_experts, 3, 0.5 / family.num_experts)
               : std::vector<float>{};
  const Buffer bias_buffer = floats(bias);
  const ModelRouter reference(model_of(family), {bias.begin(), bias.end()});
  const RouterOp op{.num_tokens = kTokens,
                    .hidden_dim = kHidden,
                    .num_experts = family.num_experts,
                    .top_k = family.top_k,
                    .dtype = DType::fp32,
                    .score = family.score,
                    .renormalize = family.router.renormalize,
                    .scale = static_cast<float>(family.router.scale),
                    .groups = family.router.group_limit(),
                    .select_by_logit = family.router.selects_by_logit(),
                    .selection_bias = has_bias ? &bias_buffer : nullptr};
  std::vector<std::int32_t> expected;
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const std::vector<std::int32_t> experts = reference.route(logits(t)).experts;
    expected.insert(expected.end(), experts.begin(), experts.end());
  }
  const auto backend = make_cpu_backend({.num_threads = 2});
  const auto lane = backend->make_lane();
  const std::int64_t choices = kTokens * family.top_k;
  Buffer own = make_cpu_buffer(choices * 4), weights = make_cpu_buffer(choices * 4);
  backend->token_ops().router(*lane, op, floats(x_), floats(gate_), host_view(expected), own,
                              weights);

  std::int64_t different = 0;
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const auto at = static_cast<std::size_t>(t * family.top_k);
    const auto experts = std::span(expected).subspan(at, static_cast<std::size_t>(family.top_k));
    const std::vector<double> wanted = reference.weights(logits(t), experts);
    for (std::size_t j = 0; j < wanted.size(); ++j) {
      different += own.as<std::int32_t>()[at + j] != experts[j] ? 1 : 0;
      EXPECT_NEAR(static_cast<double>(weights.as<float>()[at + j]), wanted[j], 1e-5 * wanted[j]);
    }
  }
  EXPECT_LE(different, choices / 500) << "of " << choices;
}

INSTANTIATE_TEST_SUITE_P(Families, CpuRouterFamilies, testing::ValuesIn(families()),
                         [](const auto& test) { return test.param.name; });

TEST(CpuRouter, TiesGoToTheLowerExpertAndTheLowerGroup) {
  const auto backend = make_cpu_backend({.num_threads = 1});
  const auto lane = backend->make_lane();
  const Buffer x = floats({1}), gate = floats({0, 0, 1, 2, 2, 1, 5, 5});
  const Buffer bias = floats(std::vector<float>(8, 0));
  const std::vector<std::int32_t> prescribed = {0, 1, 2, 3};
  RouterOp op{.num_tokens = 1,
              .hidden_dim = 1,
              .num_experts = 8,
              .top_k = 4,
              .dtype = DType::fp32,
              .score = ScoreFunction::sigmoid};
  op.groups = {.num_groups = 4, .topk_groups = 2, .score = GroupScore::top2_sum};
  op.select_by_logit = false;
  op.selection_bias = &bias;
  Buffer own = make_cpu_buffer(16), weights = make_cpu_buffer(16);
  backend->token_ops().router(*lane, op, x, gate, host_view(prescribed), own, weights);
  const auto chosen = own.as<std::int32_t>();
  EXPECT_EQ(std::vector(chosen.begin(), chosen.end()), (std::vector<std::int32_t>{6, 7, 3, 2}));
}

TEST(CpuRouter, ScoresThatVanishGiveWeightZero) {
  const auto backend = make_cpu_backend({.num_threads = 1});
  const auto lane = backend->make_lane();
  const Buffer x = floats({1}), gate = floats({-1e6F, -1e6F, -1e6F});
  const std::vector<std::int32_t> prescribed = {2, 0};
  const RouterOp op{.num_tokens = 1,
                    .hidden_dim = 1,
                    .num_experts = 3,
                    .top_k = 2,
                    .dtype = DType::fp32,
                    .score = ScoreFunction::sigmoid,
                    .renormalize = true};
  Buffer own = make_cpu_buffer(8), weights = make_cpu_buffer(8);
  backend->token_ops().router(*lane, op, x, gate, host_view(prescribed), own, weights);
  for (const float weight : weights.as<float>()) EXPECT_NEAR(weight, 0, 1e-12F);
}

}  // namespace
}  // namespace epsweep
