#include "workload/expert_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace epsweep {
namespace {

std::vector<double> power_law(int size, double alpha) {
  std::vector<double> loads;
  for (int i = 1; i <= size; ++i) loads.push_back(std::pow(i, -alpha));
  return loads;
}

std::vector<double> with_hot(int size, int num_hot, double load) {
  std::vector<double> loads(static_cast<std::size_t>(size), 1.0);
  std::fill_n(loads.begin(), num_hot, load);
  return loads;
}

// Share of tokens that pick each expert; also checks that the picks are distinct.
std::vector<double> measured_shares(const ExpertSampler& sampler, std::size_t num_experts,
                                    int top_k, int num_tokens) {
  std::vector<double> shares(num_experts, 0.0);
  std::vector<std::int32_t> experts(static_cast<std::size_t>(top_k));
  for (int token = 0; token < num_tokens; ++token) {
    sampler.draw(RandomStream(11, Stream::test, static_cast<std::uint64_t>(token)), experts);
    const std::set<std::int32_t> distinct(experts.begin(), experts.end());
    EXPECT_EQ(distinct.size(), experts.size()) << "token " << token;
    for (const std::int32_t expert : experts) shares.at(static_cast<std::size_t>(expert)) += 1;
  }
  for (double& share : shares) share /= num_tokens;
  return shares;
}

// Five standard deviations of the measurement, and 0.2 % for the solver.
void expect_shares(const std::vector<double>& loads, int top_k, const std::string& what) {
  constexpr int kTokens = 200'000;
  const std::vector<double> pi = inclusion_probabilities(loads, top_k);
  EXPECT_NEAR(std::accumulate(pi.begin(), pi.end(), 0.0), top_k, 1e-9) << what;
  const std::vector<double> shares =
      measured_shares(ExpertSampler(loads, top_k), loads.size(), top_k, kTokens);
  for (std::size_t e = 0; e < loads.size(); ++e) {
    const double deviation = std::sqrt(pi[e] * (1 - pi[e]) / kTokens);
    EXPECT_NEAR(shares[e], pi[e], 5 * deviation + 0.002 * pi[e] + 2e-5)
        << what << ", top_k " << top_k << ", expert " << e;
  }
}

TEST(InclusionProbabilities, in_proportion_below_the_cap) {
  EXPECT_EQ(inclusion_probabilities(std::vector<double>{1, 2, 1}, 1),
            (std::vector<double>{0.25, 0.5, 0.25}));
}

TEST(InclusionProbabilities, capped_experts_leave_the_rest_to_the_others) {
  // 100 would take 2 * 100 / 104 picks of a token: capped; 1, 1, 2 share the other pick.
  EXPECT_EQ(inclusion_probabilities(std::vector<double>{1, 100, 1, 2}, 2),
            (std::vector<double>{0.25, 1, 0.25, 0.5}));
  // Loads far apart keep their digits.
  EXPECT_EQ(inclusion_probabilities(std::vector<double>{0x1p-100, 0x1p50, 0x3p-100}, 2),
            (std::vector<double>{0.25, 1, 0.75}));
}

TEST(InclusionProbabilities, zero_loads_are_never_picked) {
  EXPECT_EQ(inclusion_probabilities(std::vector<double>{0, 5, 0, 7}, 2),
            (std::vector<double>{0, 1, 0, 1}));
  EXPECT_THROW(inclusion_probabilities(std::vector<double>{0, 5, 0, 7}, 3), ConfigError);
  EXPECT_THROW(inclusion_probabilities(std::vector<double>{0, 0}, 1), ConfigError);
  EXPECT_THROW(inclusion_probabilities(std::vector<double>{1, 1}, 0), ConfigError);
  EXPECT_THROW(inclusion_probabilities(std::vector<double>{1, -1}, 1), RunError);
  EXPECT_THROW(inclusion_probabilities(std::vector<double>{1, NAN}, 1), RunError);
}

TEST(ExpertSampler, shares_follow_the_loads) {
  for (const int top_k : {1, 2, 8}) {
    expect_shares(power_law(64, 0), top_k, "uniform");
    expect_shares(power_law(64, 1), top_k, "power law");
    expect_shares(power_law(64, 3), top_k, "steep power law");
    expect_shares(with_hot(64, 4, 40), top_k, "four hot");
  }
  expect_shares({0.9, 0.6, 0.5}, 2, "three experts");
  expect_shares(with_hot(8, 1, 0.01), 7, "all but one of eight");
}

// Draws hit the two heavy experts almost always, so the rest comes from the exact finish.
TEST(ExpertSampler, extreme_skew_ends_and_stays_unbiased) {
  std::vector<double> loads(32, 1.0);
  loads[3] = loads[30] = 30'000;
  loads[7] = 3;
  loads[5] = 0;
  expect_shares(loads, 3, "two heavy experts");
  loads[3] = loads[30] = 1e15;
  expect_shares(loads, 3, "two certain experts");
  expect_shares(with_hot(64, 3, 1e6), 4, "three certain of four");
  expect_shares(with_hot(64, 5, 600), 4, "five near-certain for four");
}

TEST(ExpertSampler, zero_load_is_never_drawn_even_at_the_limit) {
  const std::vector<double> loads = {1, 0, 1e-200, 0, 1e200, 3};
  const std::vector<double> shares = measured_shares(ExpertSampler(loads, 4), 6, 4, 100);
  EXPECT_EQ(shares, (std::vector<double>{1, 0, 1, 0, 1, 1}));
}

TEST(ExpertSampler, top_k_of_all_experts) {
  const std::vector<double> shares = measured_shares(ExpertSampler(power_law(8, 2), 8), 8, 8, 100);
  EXPECT_EQ(shares, std::vector<double>(8, 1.0));
}

TEST(ExpertSampler, refuses_room_for_another_number_of_experts) {
  std::vector<std::int32_t> experts(3);
  EXPECT_THROW(ExpertSampler(power_law(8, 1), 2).draw(RandomStream(1, Stream::test), experts),
               RunError);
}

}  // namespace
}  // namespace epsweep
