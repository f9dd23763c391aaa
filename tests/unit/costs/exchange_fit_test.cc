#include "costs/exchange_fit.h"

#include <vector>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

std::vector<ExchangeSample> ladder(double alpha_s, double beta) {
  std::vector<ExchangeSample> samples;
  for (double bytes = 64; bytes <= 4 << 20; bytes *= 4) {
    samples.push_back({bytes, alpha_s + bytes / beta});
  }
  return samples;
}

TEST(ExchangeFit, FindsTheLineThatMadeTheLadder) {
  const auto line = fit_exchange(ladder(12e-6, 3e9));
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->alpha_s, 12e-6, 12e-6 * 1e-9);
  EXPECT_NEAR(line->beta_bytes_per_s, 3e9, 3e9 * 1e-9);
  EXPECT_NEAR(line->predict_s(3e6), 12e-6 + 1e-3, 1e-12);
}

// Two samples lie on their line whatever the weights: 1 us + 1000 B at 1 GB/s.
TEST(ExchangeFit, TwoSizesAreOnTheLine) {
  const std::vector<ExchangeSample> samples = {{1000, 2e-6}, {9000, 10e-6}};
  const auto line = fit_exchange(samples);
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->alpha_s, 1e-6, 1e-15);
  EXPECT_NEAR(line->beta_bytes_per_s, 1e9, 1);
}

// The largest exchange took 10 % longer. Of relative errors that is one among nine; unweighted
// least squares would follow it and put alpha at -4 us.
TEST(ExchangeFit, SmallExchangesCountAsMuchAsLargeOnes) {
  std::vector<ExchangeSample> samples = ladder(10e-6, 1e9);
  samples.back().seconds *= 1.1;
  const auto line = fit_exchange(samples);
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->alpha_s, 10e-6, 0.5e-6);
}

// t = x / 1e9 - 1e-6 has alpha below zero; through zero the weights leave x/t = 2e9 and 1.5e9:
// slope = (x/t sum) / (x^2/t^2 sum) = 3.5e9 / 6.25e18.
TEST(ExchangeFit, AlphaIsNeverNegative) {
  const std::vector<ExchangeSample> samples = {{2000, 1e-6}, {3000, 2e-6}};
  const auto line = fit_exchange(samples);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->alpha_s, 0);
  EXPECT_NEAR(line->beta_bytes_per_s, 6.25e18 / 3.5e9, 1);
}

TEST(ExchangeFit, SaysNothingWhereThereIsNoLine) {
  using Samples = std::vector<ExchangeSample>;
  EXPECT_FALSE(fit_exchange(Samples{}));
  EXPECT_FALSE(fit_exchange(Samples{{64, 1e-6}}));
  EXPECT_FALSE(fit_exchange(Samples{{64, 1e-6}, {64, 2e-6}}));
  EXPECT_FALSE(fit_exchange(Samples{{64, 1e-6}, {256, 0}}));
  EXPECT_FALSE(fit_exchange(Samples{{64, 2e-6}, {256, 1e-6}}));  // larger and faster
}

}  // namespace
}  // namespace epsweep
