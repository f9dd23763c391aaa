#include "costs/skew.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace epsweep {
namespace {

// Tables of the normal distribution; the far ones from scipy.stats.norm.ppf.
TEST(NormalQuantile, known_values) {
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_NEAR(normal_quantile(0.75), 0.6744897501960817, 1e-15);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-14);
  EXPECT_NEAR(normal_quantile(0.99), 2.3263478740408408, 1e-14);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-13);
  EXPECT_NEAR(normal_quantile(1e-20), -9.262340089798408, 1e-12);
  for (const double p : {0.0, 1.0, -0.1, std::nan("")}) EXPECT_THROW(normal_quantile(p), RunError);
}

// The distribution function, by an independent route, gives p back on all three branches.
TEST(NormalQuantile, inverts_the_distribution_function) {
  for (const double p : {1e-300, 1e-12, 1e-3, 0.07, 0.08, 0.3, 0.6, 0.92, 0.93, 0.999999}) {
    EXPECT_NEAR(0.5 * std::erfc(-normal_quantile(p) / std::sqrt(2.0)) / p, 1, 1e-12) << p;
  }
}

double floor_of(int ep_size, std::int64_t num_tokens, int num_experts = 256, int top_k = 8) {
  return uniform_skew_floor({num_experts, top_k, num_tokens, ep_size}).value();
}

// By hand: P = 8, C = 64 has mean 64, variance 512/8 * 7/8 * 248/255 = 54.46, z(7.625/8.25)
// = 1.434.
TEST(UniformSkewFloor, published_numbers) {
  EXPECT_NEAR(floor_of(8, 64), 1.165, 5e-4);
  EXPECT_NEAR(floor_of(32, 256), 1.251, 5e-4);
  EXPECT_NEAR(floor_of(64, 4096), 1.101, 5e-4);
  EXPECT_NEAR(floor_of(256, 256), 1.98, 5e-4);
}

TEST(UniformSkewFloor, edges) {
  EXPECT_EQ(floor_of(1, 100), 1.0);
  EXPECT_EQ(floor_of(4, 100, 8, 8), 1.0);  // every token has every expert
  EXPECT_EQ(uniform_skew_floor({8, 2, 0, 4}), std::nullopt);
}

// Against a simulation: 16 experts, top 4, P = 4; the formula is allowed 15 % of the excess.
TEST(UniformSkewFloor, is_what_uniform_routing_shows) {
  constexpr int kExperts = 16, kTopK = 4, kRanks = 4, kTokens = 64, kTrials = 2000;
  double sum = 0;
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    const RandomStream stream(1, Stream::test, trial);
    std::vector<int> rows(kRanks, 0);
    std::uint64_t next = 0;
    for (int token = 0; token < kTokens; ++token) {
      std::vector<int> experts(kExperts);
      for (int e = 0; e < kExperts; ++e) experts[static_cast<std::size_t>(e)] = e;
      for (std::size_t i = 0; i < kTopK; ++i) {
        std::swap(experts[i], experts[i + stream.below(next++, kExperts - i)]);
        ++rows[static_cast<std::size_t>(experts[i] / (kExperts / kRanks))];
      }
    }
    sum += std::ranges::max(rows) / static_cast<double>(kTokens * kTopK / kRanks);
  }
  const double excess = sum / kTrials - 1;
  EXPECT_NEAR(floor_of(kRanks, kTokens, kExperts, kTopK) - 1, excess, 0.15 * excess);
}

Placement placed(const std::vector<int>& slots, int num_experts, int ep_size) {
  return make_placement("map", {.num_experts = num_experts,
                                .ep_size = ep_size,
                                .redundant_slots = static_cast<int>(slots.size()) - num_experts,
                                .listed_slots = slots});
}

TEST(SkewWall, is_replicas_over_share_of_the_hottest_expert) {
  const std::vector<std::int64_t> rows = {6, 2, 2, 2};
  EXPECT_EQ(skew_wall(rows, make_placement("contiguous", {4, 2})), 2.0);
  EXPECT_EQ(skew_wall(rows, placed({0, 1, 2, 0, 3, 2}, 4, 2)), 4.0);
  // Three replicas of the hottest: now the others are as hot as one of them.
  EXPECT_EQ(skew_wall(rows, placed({0, 1, 0, 2, 0, 3}, 4, 3)), 6.0);
  EXPECT_EQ(skew_wall(std::vector<std::int64_t>(4, 0), make_placement("contiguous", {4, 2})),
            std::nullopt);
}

}  // namespace
}  // namespace epsweep
