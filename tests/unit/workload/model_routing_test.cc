// The distributions that depend on the model's router: gate and group_limited.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <gmock/gmock.h>

#include "sample_points.h"
#include "workload/gate.h"
#include "workload/payload.h"
#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

SweepPoint deepseek_like(const std::string& distribution, std::int64_t num_tokens) {
  SweepPoint point = sample_point(distribution, 256, 8, num_tokens);
  point.model.router = {.scoring = Scoring::sigmoid,
                        .renormalize = true,
                        .scale = 2.5,
                        .num_groups = 8,
                        .topk_groups = 4,
                        .selection_bias = true};
  return point;
}

std::size_t distinct_groups(const Trace& trace, std::int64_t token, int group_size) {
  std::set<std::int32_t> groups;
  for (const std::int32_t expert : trace.of_token(token)) groups.insert(expert / group_size);
  return groups.size();
}

// Mean number of ranks that a token goes to.
double mean_destinations(const Trace& trace, int ep_size) {
  const Placement placement = make_placement("contiguous", {256, ep_size});
  std::size_t total = 0;
  for (std::int64_t token = 0; token < trace.num_tokens; ++token) {
    std::set<int> ranks;
    for (const std::int32_t e : trace.of_token(token)) {
      ranks.insert(placement.rank_of(e, token));
    }
    total += ranks.size();
  }
  return static_cast<double>(total) / static_cast<double>(trace.num_tokens);
}

// Whether groups are judged by their two best experts (with a bias) or their best one.
TEST(GroupLimited, DestinationsAreThoseOfAMonteCarloOfDeepSeekV3) {
  SweepPoint point = deepseek_like("group_limited", 20'000);
  for (const bool bias : {true, false}) {
    point.model.router.selection_bias = bias;
    const Trace trace = draw_trace(point, 0);
    int ep_size = 2;
    for (const double ranks : {1.96, 3.10, 3.95, 5.71, 6.85, 7.49}) {
      EXPECT_NEAR(mean_destinations(trace, ep_size), ranks, 0.02 * ranks) << "EP" << ep_size;
      ep_size *= 2;
    }
  }
}

TEST(GroupLimited, KeepsToTheGroupsAndSpreadsEvenlyWithoutSigmas) {
  const Trace trace = draw_trace(deepseek_like("group_limited", 20'000), 0);
  for (std::int64_t token = 0; token < trace.num_tokens; ++token) {
    ASSERT_LE(distinct_groups(trace, token, 32), 4U);
  }
  const std::vector<std::int64_t> rows = rows_per_expert(trace);
  // 625 rows each, standard deviation 25.
  EXPECT_GT(*std::min_element(rows.begin(), rows.end()), 625 - 125);
  EXPECT_LT(*std::max_element(rows.begin(), rows.end()), 625 + 125);
}

TEST(GroupLimited, LoadsAreThoseOfLognormalBlocksWhereGroupsDoNotLimit) {
  SweepPoint limited = deepseek_like("group_limited", 20'000);
  limited.model.router.topk_groups = 8;
  SweepPoint free = sample_point("lognormal_blocks", 256, 8, 20'000);
  for (const Routing::Param& param : free.routing.params) {
    set_param(limited.routing, param.name, param.value);
  }
  const std::vector<std::int64_t> with = rows_per_expert(draw_trace(limited, 3));
  const std::vector<std::int64_t> without = rows_per_expert(draw_trace(free, 3));
  for (std::size_t e = 0; e < with.size(); ++e) {
    const auto rows = static_cast<double>(without[e]);
    EXPECT_NEAR(static_cast<double>(with[e]), rows, 6 * std::sqrt(rows) + 6) << "expert " << e;
  }
}

TEST(GroupLimited, HotExpertsStayHotUnderTheLimit) {
  SweepPoint point = deepseek_like("group_limited", 20'000);
  for (const char* name : {"sigma_block", "sigma_subblock", "sigma_expert"}) {
    set_param(point.routing, name, 0.5);
  }
  const std::vector<std::int64_t> limited = rows_per_expert(draw_trace(point, 0));
  point.model.router.topk_groups = 8;
  const std::vector<std::int64_t> free = rows_per_expert(draw_trace(point, 0));
  double cross = 0, squares_limited = 0, squares_free = 0;
  for (std::size_t e = 0; e < free.size(); ++e) {
    const double a = static_cast<double>(limited[e]) - 625, b = static_cast<double>(free[e]) - 625;
    cross += a * b;
    squares_limited += a * a;
    squares_free += b * b;
  }
  EXPECT_GT(cross / std::sqrt(squares_limited * squares_free), 0.9);
}

TEST(GroupLimited, AModelWithoutGroupsIsRefused) {
  SweepPoint point = sample_point("group_limited", 64, 8, 10);
  point.model.router.num_groups = point.model.router.topk_groups = 1;
  EXPECT_THAT(config_error([&] { draw_trace(point, 0); }), HasSubstr("no expert groups"));
  point.model.router.num_groups = 16;  // groups of 4
  EXPECT_THAT(config_error([&] { draw_trace(point, 0); }), HasSubstr("hold only 4 experts"));
}

TEST(Gate, TheTraceIsWhatTheRouterChoosesForTheTokens) {
  const SweepPoint point = deepseek_like("gate", 50);
  const Trace trace = draw_trace(point, 2);
  const LayerGate gate(point.seed, 2, point.model);
  std::vector<float> x(32), row(32);
  for (std::int64_t token = 0; token < 50; ++token) {
    const std::vector<double> logits = gate.logits(token);
    token_matrix(point.seed, 32).fill_row(token, std::span(x));
    for (std::size_t e = 0; e < logits.size(); ++e) {
      gate_matrix(point.seed, 2, 32).fill_row(static_cast<std::int64_t>(e), std::span(row));
      double sum = 0;
      for (std::size_t h = 0; h < 32; ++h) {
        sum += static_cast<double>(x[h]) * static_cast<double>(row[h]);
      }
      ASSERT_EQ(logits[e], sum);
    }
    const auto chosen = trace.of_token(token);
    EXPECT_EQ(std::vector(chosen.begin(), chosen.end()), gate.router().route(logits).experts);
    EXPECT_LE(distinct_groups(trace, token, 32), 4U);
  }
}

TEST(Gate, LogitsAreExactForWideRowsToo) {
  ModelShape model = deepseek_like("gate", 1).model;
  model.hidden_dim = 7168;
  model.num_experts = 8;
  model.top_k = 2;
  const LayerGate gate(3, 1, model);
  std::vector<float> x(7168), row(7168);
  token_matrix(3, 7168).fill_row(5, std::span(x));
  for (std::int64_t e = 0; e < 8; ++e) {
    gate_matrix(3, 1, 7168).fill_row(e, std::span(row));
    long double sum = 0;
    for (std::size_t h = 7168; h-- > 0;) {
      sum += static_cast<long double>(x[h]) * static_cast<long double>(row[h]);
    }
    EXPECT_EQ(static_cast<long double>(gate.logits(5)[static_cast<std::size_t>(e)]), sum);
  }
}

TEST(Gate, BiasIsSmallSeededAndOnlyWhereTheModelHasOne) {
  ModelShape model = deepseek_like("gate", 1).model;
  const std::vector<float> bias = layer_selection_bias(1, 0, model);
  ASSERT_EQ(bias.size(), 256U);
  for (const float value : bias) EXPECT_LT(std::abs(value), 0.0625F);
  EXPECT_EQ(bias, layer_selection_bias(1, 0, model));
  EXPECT_NE(bias, layer_selection_bias(1, 1, model));
  EXPECT_NE(bias, layer_selection_bias(2, 0, model));
  model.router.scoring = Scoring::softmax;
  for (const float value : layer_selection_bias(1, 0, model))
    EXPECT_LT(std::abs(value), 1 / 2048.F);
  model.router.selection_bias = false;
  EXPECT_TRUE(layer_selection_bias(1, 0, model).empty());
}

TEST(Gate, ChangesWithTheRouterAndSoDoesTheKeyOfTheTrace) {
  const SweepPoint grouped = deepseek_like("gate", 200);
  SweepPoint plain = grouped;
  plain.model.router = {};
  EXPECT_NE(routing_checksum(draw_trace(grouped, 0)), routing_checksum(draw_trace(plain, 0)));
  EXPECT_NE(trace_key(grouped), trace_key(plain));
  plain = grouped;
  plain.model.hidden_dim = 64;
  EXPECT_NE(trace_key(grouped), trace_key(plain));
}

}  // namespace
}  // namespace epsweep
