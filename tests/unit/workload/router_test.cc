// The reference router of every family against numbers worked out by hand, against a plain
// re-statement of the rules, and where it could break: ties, infinities, odd groups.
#include "workload/router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include <gmock/gmock.h>

#include "base/random.h"
#include "sample_points.h"

namespace epsweep {
namespace {

using Ids = std::vector<std::int32_t>;
using Row = std::vector<double>;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

constexpr double kInf = std::numeric_limits<double>::infinity();

ModelShape shape(int num_experts, int top_k, const RouterShape& router) {
  ModelShape model;
  model.name = "sample";
  model.num_experts = num_experts;
  model.top_k = top_k;
  model.router = router;
  return model;
}

void expect_choice(const RouterChoice& choice, const Ids& experts, const Row& weights) {
  EXPECT_EQ(choice.experts, experts);
  EXPECT_THAT(choice.weights, Pointwise(DoubleNear(1e-12), weights));
}

// Logits of given scores.
Row of_softmax(Row p) {
  for (double& value : p) value = std::log(value) + 3;  // a softmax ignores a common addend
  return p;
}
Row of_sigmoid(Row s) {
  for (double& value : s) value = std::log(value / (1 - value));
  return s;
}
Row of_sqrtsoftplus(Row s) {
  for (double& value : s) value = std::log(std::expm1(value * value));
  return s;
}

TEST(Router, MixtralDividesTheChosenProbabilitiesByTheirSum) {
  const ModelRouter router(shape(4, 2, {.scoring = Scoring::softmax, .renormalize = true}));
  expect_choice(router.route(of_softmax({.1, .2, .4, .3})), {2, 3}, {4. / 7, 3. / 7});
}

TEST(Router, OlmoeKeepsTheProbabilities) {
  const ModelRouter router(shape(4, 2, {.scoring = Scoring::softmax}));
  expect_choice(router.route(of_softmax({.1, .2, .4, .3})), {2, 3}, {.4, .3});
}

TEST(Router, GptOssTakesTheSoftmaxOfTheChosenLogits) {
  const ModelRouter router(shape(4, 2, {.scoring = Scoring::topk_softmax, .renormalize = true}));
  expect_choice(router.route(of_softmax({.1, .2, .4, .3})), {2, 3}, {4. / 7, 3. / 7});
}

// Groups {0,1} to {6,7}: by their largest 0 and 2 are kept, by their sums 0 and 1 would be.
TEST(Router, DeepSeekV2KeepsTheGroupsWithTheLargestProbability) {
  const ModelRouter router(
      shape(8, 3, {.scoring = Scoring::softmax, .scale = 16, .num_groups = 4, .topk_groups = 2}));
  expect_choice(router.route(of_softmax({.30, .02, .15, .15, .16, .08, .08, .06})), {0, 4, 5},
                {4.8, 2.56, 1.28});
}

const RouterShape kDeepSeekV3 = {.scoring = Scoring::sigmoid,
                                 .renormalize = true,
                                 .scale = 2.5,
                                 .num_groups = 4,
                                 .topk_groups = 2,
                                 .selection_bias = true};

// Group sums 1.0, 1.25, 1.0, 1.1: the best expert of all is not in a kept group.
TEST(Router, DeepSeekV3KeepsTheGroupsWithTheLargestSumOfTwo) {
  const Row logits = of_sigmoid({.9, .1, .6, .65, .5, .5, .8, .3});
  expect_choice(ModelRouter(shape(8, 2, kDeepSeekV3)).route(logits), {6, 3},
                {2.5 * .8 / 1.45, 2.5 * .65 / 1.45});
}

// The bias lifts expert 1, hence its group, and is not in the weights.
TEST(Router, DeepSeekV3BiasSelectsAndDoesNotWeigh) {
  const Row logits = of_sigmoid({.9, .1, .6, .65, .5, .5, .8, .3});
  const ModelRouter router(shape(8, 2, kDeepSeekV3), {0, .65, 0, 0, 0, 0, 0, 0});
  expect_choice(router.route(logits), {0, 1}, {2.5 * .9, 2.5 * .1});
}

TEST(Router, KimiK2IsABiasedTopKWithoutGroups) {
  RouterShape ungrouped = kDeepSeekV3;
  ungrouped.num_groups = ungrouped.topk_groups = 1;
  const ModelRouter router(shape(4, 2, ungrouped), {-.3, 0, 0, .1});
  expect_choice(router.route(of_sigmoid({.8, .6, .2, .55})), {3, 1},
                {2.5 * .55 / 1.15, 2.5 * .6 / 1.15});
}

TEST(Router, DeepSeekV4TakesTheRootOfSoftplus) {
  const ModelRouter router(shape(4, 2,
                                 {.scoring = Scoring::sqrtsoftplus,
                                  .renormalize = true,
                                  .scale = 1.5,
                                  .selection_bias = true}),
                           {0, 0, .6, 0});
  expect_choice(router.route(of_sqrtsoftplus({2, 1.5, 1, .5})), {0, 2}, {1, .5});
}

TEST(Router, ErnieAddsItsBiasToProbabilities) {
  const ModelRouter router(
      shape(4, 2, {.scoring = Scoring::softmax, .renormalize = true, .selection_bias = true}),
      {.25, 0, 0, 0});
  expect_choice(router.route(of_softmax({.1, .2, .4, .3})), {2, 0}, {.8, .2});
}

// Both sigmoids round to 1, and still the larger logit wins.
TEST(Router, Llama4TakesTheLargestLogit) {
  const ModelRouter router(shape(3, 1, {.scoring = Scoring::sigmoid}));
  expect_choice(router.route(Row{1, 50, 60}), {2}, {1});
  expect_choice(router.route(Row{-1, -2, -3}), {0}, {1 / (1 + std::exp(1.0))});
}

TEST(Router, WeightsOfPrescribedExpertsComeInTheirOrder) {
  const Row logits = of_softmax({.1, .2, .4, .3});
  const ModelRouter router(shape(4, 2, {.scoring = Scoring::softmax, .renormalize = true}));
  EXPECT_THAT(router.weights(logits, Ids{0, 3}), Pointwise(DoubleNear(1e-12), Row{.25, .75}));
  EXPECT_THAT(router.weights(logits, Ids{1}), Pointwise(DoubleNear(1e-12), Row{1}));
}

// Every combination of rules, said once more by sorting.
struct PlainChoice {
  Ids experts;
  Row weights;
};

PlainChoice plain_route(const ModelShape& model, const Row& bias, const Row& z) {
  const RouterShape& rules = model.router;
  double sum = 0;
  for (const double value : z) sum += std::exp(value);
  Row s, selection;
  for (std::size_t e = 0; e < z.size(); ++e) {
    if (rules.scoring == Scoring::softmax) s.push_back(std::exp(z[e]) / sum);
    if (rules.scoring == Scoring::topk_softmax) s.push_back(z[e]);
    if (rules.scoring == Scoring::sigmoid) s.push_back(1 / (1 + std::exp(-z[e])));
    if (rules.scoring == Scoring::sqrtsoftplus)
      s.push_back(std::sqrt(std::log(1 + std::exp(z[e]))));
    selection.push_back(s[e] + (bias.empty() ? 0 : bias[e]));
  }
  const std::size_t group_size = z.size() / static_cast<std::size_t>(rules.num_groups);
  std::vector<std::pair<double, std::size_t>> groups;  // negated, so that sorting puts best first
  for (std::size_t g = 0; g < z.size() / group_size; ++g) {
    const auto begin = selection.begin() + static_cast<std::ptrdiff_t>(g * group_size);
    Row members(begin, begin + static_cast<std::ptrdiff_t>(group_size));
    std::sort(members.rbegin(), members.rend());
    const bool two = rules.selection_bias && group_size > 1;
    groups.emplace_back(-(members[0] + (two ? members[1] : 0)), g);
  }
  std::sort(groups.begin(), groups.end());
  groups.resize(static_cast<std::size_t>(rules.topk_groups));
  std::vector<std::pair<double, std::int32_t>> left;
  for (const auto& [score, group] : groups) {
    for (std::size_t e = group * group_size; e < (group + 1) * group_size; ++e) {
      left.emplace_back(-selection[e], static_cast<std::int32_t>(e));
    }
  }
  std::sort(left.begin(), left.end());
  PlainChoice choice;
  double chosen_sum = 0;
  for (int j = 0; j < model.top_k; ++j) {
    choice.experts.push_back(left[static_cast<std::size_t>(j)].second);
    const auto at = static_cast<std::size_t>(choice.experts.back());
    choice.weights.push_back(rules.scoring == Scoring::topk_softmax ? std::exp(z[at]) : s[at]);
    chosen_sum += choice.weights.back();
  }
  const bool divides = rules.renormalize || rules.scoring == Scoring::topk_softmax;
  for (double& weight : choice.weights) weight *= rules.scale / (divides ? chosen_sum : 1);
  return choice;
}

Row random_row(std::uint64_t key, std::size_t size, double range) {
  const RandomStream random(17, Stream::test, key);
  Row row;
  for (std::size_t i = 0; i < size; ++i) row.push_back(range * (2 * random.uniform(i) - 1));
  return row;
}

TEST(Router, EveryCombinationOfRulesAgreesWithThePlainStatement) {
  std::uint64_t key = 0;
  for (const Scoring scoring :
       {Scoring::softmax, Scoring::topk_softmax, Scoring::sigmoid, Scoring::sqrtsoftplus}) {
    for (int rules = 0; rules < 4; ++rules) {
      for (const auto& [groups, kept] : {std::pair{1, 1}, {4, 2}, {8, 4}, {24, 7}, {4, 4}}) {
        const ModelShape model = shape(24, 5,
                                       {.scoring = scoring,
                                        .renormalize = rules % 2 == 1,
                                        .scale = 1.7,
                                        .num_groups = groups,
                                        .topk_groups = kept,
                                        .selection_bias = rules / 2 == 1});
        const Row bias = model.router.selection_bias ? random_row(++key, 24, .1) : Row{};
        const ModelRouter router(model, bias);
        for (int token = 0; token < 20; ++token) {
          const Row logits = random_row(++key, 24, 3);
          const PlainChoice plain = plain_route(model, bias, logits);
          SCOPED_TRACE(testing::Message() << scoring_names()[static_cast<std::size_t>(scoring)]
                                          << rules << " groups " << groups << " token " << token);
          expect_choice(router.route(logits), plain.experts, plain.weights);
        }
      }
    }
  }
}

TEST(Router, TiesGoToTheLowerExpertAndTheLowerGroup) {
  const Row equal(8, 0.25);
  EXPECT_THAT(ModelRouter(shape(8, 3, {})).route(equal).experts, ElementsAre(0, 1, 2));
  EXPECT_THAT(ModelRouter(shape(8, 3, kDeepSeekV3)).route(equal).experts, ElementsAre(0, 1, 2));
  // Group 3 wins, groups 1 and 2 tie for the second place.
  const Row logits = {0, 0, 1, 2, 2, 1, 5, 5};
  EXPECT_THAT(ModelRouter(shape(8, 4, kDeepSeekV3)).route(logits).experts, ElementsAre(6, 7, 3, 2));
  EXPECT_THAT(ModelRouter(shape(3, 2, {})).route(Row{-0.0, 0.0, -0.0}).experts, ElementsAre(0, 1));
}

TEST(Router, GroupsOfOneExpertAndGroupsThatAreAllKept) {
  RouterShape ones = kDeepSeekV3;
  ones.num_groups = 8;
  ones.topk_groups = 3;
  const Row logits = {3, 1, 4, 1.5, 5, 9, 2, 6};
  EXPECT_THAT(ModelRouter(shape(8, 3, ones)).route(logits).experts, ElementsAre(5, 7, 4));
  RouterShape all = kDeepSeekV3;
  all.topk_groups = 4;
  EXPECT_THAT(ModelRouter(shape(8, 3, all)).route(logits).experts, ElementsAre(5, 7, 4));
}

TEST(Router, AnyLogitsGiveDistinctExpertsAndFiniteWeights) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Row> rows = {Row(8, -kInf),
                                 Row(8, kInf),
                                 Row(8, nan),
                                 Row(8, -1e4),
                                 {kInf, -kInf, nan, 0, 1e300, -1e300, 1, 2},
                                 {-kInf, -kInf, -kInf, -kInf, -kInf, -kInf, -kInf, 0}};
  for (const Scoring scoring :
       {Scoring::softmax, Scoring::topk_softmax, Scoring::sigmoid, Scoring::sqrtsoftplus}) {
    for (const bool bias : {false, true}) {
      RouterShape rules = kDeepSeekV3;
      rules.scoring = scoring;
      rules.selection_bias = bias;
      for (const Row& logits : rows) {
        const RouterChoice choice =
            ModelRouter(shape(8, 4, rules), bias ? Row(8, .1) : Row{}).route(logits);
        EXPECT_EQ(std::set(choice.experts.begin(), choice.experts.end()).size(), 4U);
        for (const double weight : choice.weights) {
          EXPECT_TRUE(std::isfinite(weight) && weight >= 0) << static_cast<int>(scoring);
        }
      }
    }
  }
  // What is masked by -inf comes last.
  EXPECT_THAT(ModelRouter(shape(3, 2, {})).route(Row{-kInf, -5, -kInf}).experts, ElementsAre(1, 0));
}

TEST(Router, ShapesThatMakeNoRouterAreRefused) {
  RouterShape few = kDeepSeekV3;  // 2 groups of 2 experts
  EXPECT_THAT(config_error([&] { ModelRouter{shape(8, 5, few)}; }),
              HasSubstr("top_k is 5, but topk_groups 2 of 4 groups hold only 4 experts"));
  EXPECT_NE(config_error([&] { ModelRouter{shape(9, 2, few)}; }), "");
  EXPECT_NE(config_error([&] { ModelRouter{shape(4, 5, {})}; }), "");
  EXPECT_THAT(config_error([&] { ModelRouter(shape(8, 2, few), Row(7, 0)); }),
              HasSubstr("7 selection biases for 8 experts"));
}

}  // namespace
}  // namespace epsweep
