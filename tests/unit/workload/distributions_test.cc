#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sample_points.h"
#include "workload/distribution.h"
#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {
namespace {

constexpr int kExperts = 64, kTopK = 8;

// Every distribution of the catalog; a new one is tested by being there.
class EveryDistribution : public ::testing::TestWithParam<std::string> {
 protected:
  std::int64_t num_tokens() const { return replayed() ? 32 : 1000; }
  bool replayed() const { return GetParam() == "recorded_trace"; }
  SweepPoint point() const { return sample_point(GetParam(), kExperts, kTopK, num_tokens()); }
};

INSTANTIATE_TEST_SUITE_P(Catalog, EveryDistribution,
                         ::testing::ValuesIn(DistributionCatalog::instance().names()),
                         [](const auto& test) { return test.param; });

TEST_P(EveryDistribution, experts_are_distinct_and_in_range) {
  const Trace trace = draw_trace(point(), 0);
  ASSERT_EQ(trace.experts.size(), static_cast<std::size_t>(num_tokens() * kTopK));
  for (std::int64_t token = 0; token < num_tokens(); ++token) {
    const auto experts = trace.of_token(token);
    const std::set<std::int32_t> distinct(experts.begin(), experts.end());
    ASSERT_EQ(distinct.size(), static_cast<std::size_t>(kTopK)) << "token " << token;
    ASSERT_GE(*distinct.begin(), 0);
    ASSERT_LT(*distinct.rbegin(), kExperts);
  }
  const std::vector<std::int64_t> rows = rows_per_expert(trace);
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), num_tokens() * kTopK);
}

TEST_P(EveryDistribution, any_token_in_any_order) {
  const SweepPoint sample = point();
  const Trace trace = draw_trace(sample, 1);
  const TokenRouter router = make_token_router(sample, 1);
  std::array<std::int32_t, kTopK> experts;
  for (std::int64_t token = num_tokens(); token-- > 0;) {
    router(token, experts);
    const auto expected = trace.of_token(token);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), experts.begin())) << token;
  }
}

TEST_P(EveryDistribution, depends_on_seed_step_and_layer) {
  SweepPoint sample = point();
  const std::uint64_t base = routing_checksum(draw_trace(sample, 0));
  EXPECT_EQ(base, routing_checksum(draw_trace(sample, 0)));
  EXPECT_NE(base, routing_checksum(draw_trace(sample, 1)));
  sample.seed = 8;
  EXPECT_EQ(base == routing_checksum(draw_trace(sample, 0)), replayed());
  sample.seed = 1;
  sample.step = 1;
  EXPECT_NE(base, routing_checksum(draw_trace(sample, 0)));
}

TEST_P(EveryDistribution, is_the_same_for_every_ep_size) {
  SweepPoint sample = point();
  const std::uint64_t base = routing_checksum(draw_trace(sample, 0));
  for (const int ep_size : {2, 8, 32}) {
    sample.ep_size = ep_size;
    sample.placement = ep_size == 8 ? "round_robin" : "contiguous";
    EXPECT_EQ(base, routing_checksum(draw_trace(sample, 0))) << "EP" << ep_size;
  }
  sample.ep_size = 4;
  sample.concurrency.mode = ConcurrencyMode::fixed_per_rank;
  sample.concurrency.tokens = num_tokens() / 4;
  EXPECT_EQ(base, routing_checksum(draw_trace(sample, 0))) << "held per rank";
}

TEST_P(EveryDistribution, draws_nothing_for_no_tokens) {
  SweepPoint sample = point();
  sample.concurrency.tokens = 0;
  EXPECT_TRUE(draw_trace(sample, 0).experts.empty());
}

// C11
TEST(Distributions, top_k_of_all_experts_gives_equal_rows) {
  for (const std::string& name : DistributionCatalog::instance().names()) {
    if (name.starts_with("recorded")) continue;
    SweepPoint point = sample_point(name, 8, 8, 50);
    set_param(point.routing, "hot_ep_size", 2);  // 4 of 8 experts, half of the picks
    EXPECT_EQ(rows_per_expert(draw_trace(point, 0)), std::vector<std::int64_t>(8, 50)) << name;
  }
}

TEST(Distributions, top_k_outside_the_experts_is_refused) {
  for (const int top_k : {9, 0, -1}) {
    const SweepPoint point = sample_point("uniform", 8, top_k, 10);
    const std::string message = config_error([&] { draw_trace(point, 0); });
    EXPECT_NE(message.find("top_k " + std::to_string(top_k)), std::string::npos) << message;
  }
  EXPECT_EQ(draw_trace(sample_point("uniform", 8, 1, 10), 0).experts.size(), 10U);
}

// Traces of different versions are compared by checksum: these may never change.
TEST(Distributions, golden_checksums) {
  EXPECT_EQ(routing_checksum(draw_trace(sample_point("balanced", 256, 8, 1000), 3)),
            0xff6874bcf707bb5bU);
  EXPECT_EQ(routing_checksum(draw_trace(sample_point("uniform", 256, 8, 1000), 3)),
            0xfcb87fa136c597cfU);
  const std::vector<Trace> layers = {draw_trace(sample_point("uniform", 256, 8, 10), 0),
                                     draw_trace(sample_point("uniform", 256, 8, 10), 1)};
  const std::vector<Trace> swapped = {layers[1], layers[0]};
  EXPECT_NE(routing_checksum(layers), routing_checksum(swapped));
}

// C28: 256 * (1 - (1 - 8/256)^C)
TEST(Uniform, distinct_active_experts) {
  const std::vector<std::int64_t> tokens = {1, 8, 32, 64, 1024};
  const std::vector<double> expected = {8.0, 57.4, 163.3, 222.4, 256};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    double active = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      SweepPoint point = sample_point("uniform", 256, 8, tokens[i]);
      point.seed = seed;
      const std::vector<std::int64_t> rows = rows_per_expert(draw_trace(point, 0));
      active += 256 - static_cast<double>(std::count(rows.begin(), rows.end(), 0));
    }
    EXPECT_NEAR(active / 200, expected[i], 0.02 * expected[i]) << tokens[i] << " tokens";
  }
}

double share_of(const std::vector<std::int64_t>& rows) {
  return static_cast<double>(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}));
}

TEST(HotRank, takes_its_share_at_its_ep_size) {
  for (const double fraction : {0.0, 0.3, 0.5, 0.9, 1.0}) {
    SweepPoint point = sample_point("hot_rank", 256, 8, 20'000);
    set_param(point.routing, "hot_fraction", fraction);
    const std::vector<std::int64_t> rows = rows_per_expert(draw_trace(point, 2));
    const std::vector<std::int64_t> at_8 =
        rows_per_rank(make_placement("contiguous", {256, 8}), rows);
    EXPECT_NEAR(static_cast<double>(at_8[0]) / share_of(rows), fraction, 0.01);
    // Twice as wide, the heat is on two ranks.
    const std::vector<std::int64_t> at_16 =
        rows_per_rank(make_placement("contiguous", {256, 16}), rows);
    EXPECT_NEAR(static_cast<double>(at_16[0]) / share_of(rows), fraction / 2, 0.01);
    EXPECT_EQ(at_16[0] + at_16[1], at_8[0]);
  }
}

TEST(HotRank, shares_that_distinct_experts_cannot_take_are_refused) {
  SweepPoint point = sample_point("hot_rank", 64, 8, 10);
  set_param(point.routing, "hot_ep_size", 32);  // 2 experts for 4 picks
  const std::string message = config_error([&] { draw_trace(point, 0); });
  EXPECT_NE(message.find("hot_fraction 0.5 gives 4 of each token's 8 picks to the 2 hot experts"),
            std::string::npos)
      << message;
  set_param(point.routing, "hot_ep_size", 1);  // all experts hot, half the picks for the others
  EXPECT_NE(config_error([&] { draw_trace(point, 0); }), "");
}

TEST(KHot, hot_experts_take_their_share_and_move_with_the_layer) {
  SweepPoint point = sample_point("k_hot", 256, 8, 20'000);
  set_param(point.routing, "num_hot", 6);
  std::set<std::vector<std::size_t>> hot_sets;
  for (int layer = 0; layer < 4; ++layer) {
    std::vector<std::int64_t> rows = rows_per_expert(draw_trace(point, layer));
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return rows[a] > rows[b]; });
    double hot = 0;
    for (std::size_t i = 0; i < 6; ++i) hot += static_cast<double>(rows[order[i]]);
    EXPECT_NEAR(hot / (20'000 * 8), 0.5, 0.005);
    EXPECT_GT(rows[order[5]], 10 * rows[order[6]]);
    std::vector<std::size_t> hot_set(order.begin(), order.begin() + 6);
    std::sort(hot_set.begin(), hot_set.end());
    hot_sets.insert(hot_set);
  }
  EXPECT_EQ(hot_sets.size(), 4U);
  set_param(point.routing, "num_hot", 300);
  EXPECT_NE(config_error([&] { draw_trace(point, 0); }).find("num_hot 300"), std::string::npos);
}

TEST(Zipf, shares_follow_the_power_law) {
  SweepPoint point = sample_point("zipf", 64, 1, 100'000);
  std::vector<std::int64_t> rows = rows_per_expert(draw_trace(point, 0));
  std::sort(rows.rbegin(), rows.rend());
  const double first = static_cast<double>(rows[0]);
  EXPECT_NEAR(first / static_cast<double>(rows[1]), 2, 0.1);
  EXPECT_NEAR(first / static_cast<double>(rows[9]), 10, 1);
  set_param(point.routing, "zipf_alpha", 0);
  rows = rows_per_expert(draw_trace(point, 0));
  EXPECT_LT(*std::max_element(rows.begin(), rows.end()), 1.12 * 100'000 / 64);
}

// Mean over layers of the largest rank's load over the mean load, contiguous placement.
// Loads are those of 4000 tokens, which is near enough to the expected ones.
std::vector<double> mean_imbalance(SweepPoint point, const std::vector<int>& ep_sizes) {
  constexpr int kLayers = 400;
  std::vector<double> means(ep_sizes.size(), 0.0);
  for (int layer = 0; layer < kLayers; ++layer) {
    const Trace trace = draw_trace(point, layer);
    const std::vector<std::int64_t> rows = rows_per_expert(trace);
    const double mean_rows = static_cast<double>(trace.experts.size());
    for (std::size_t i = 0; i < ep_sizes.size(); ++i) {
      const std::vector<std::int64_t> ranks =
          rows_per_rank(make_placement("contiguous", {point.model.num_experts, ep_sizes[i]}), rows);
      means[i] += static_cast<double>(*std::max_element(ranks.begin(), ranks.end())) * ep_sizes[i] /
                  mean_rows / kLayers;
    }
  }
  return means;
}

TEST(LognormalBlocks, imbalance_is_that_of_the_published_loads) {
  const std::vector<int> ep_sizes = {8, 16, 32, 64, 128, 256};
  const std::vector<double> expected = {1.91, 2.12, 2.52, 3.08, 4.12, 6.16};
  const std::vector<double> means =
      mean_imbalance(sample_point("lognormal_blocks", 256, 8, 4000), ep_sizes);
  for (std::size_t i = 0; i < ep_sizes.size(); ++i) {
    EXPECT_NEAR(means[i], expected[i], 0.1 * expected[i]) << "EP" << ep_sizes[i];
  }
}

TEST(LognormalBlocks, neighbours_are_hot_together) {
  SweepPoint point = sample_point("lognormal_blocks", 256, 8, 4000);
  const double blocks = mean_imbalance(point, {32})[0];
  set_param(point.routing, "sigma_block", 0);
  set_param(point.routing, "sigma_subblock", 0);
  EXPECT_LT(mean_imbalance(point, {32})[0], 0.85 * blocks);
}

TEST(LognormalBlocks, works_below_one_block) {
  for (const int num_experts : {1, 2, 7, 30, 33}) {
    const SweepPoint point = sample_point("lognormal_blocks", num_experts, 1, 20);
    EXPECT_EQ(draw_trace(point, 0).experts.size(), 20U) << num_experts;
  }
}

}  // namespace
}  // namespace epsweep
