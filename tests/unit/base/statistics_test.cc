#include "base/statistics.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"

namespace epsweep {
namespace {

TEST(NearestRank, IsTheValueAtTheCeilingOfPTimesN) {
  const std::vector<double> values = {40, 10, 30, 20};
  EXPECT_EQ(nearest_rank(values, 0.5), 20);
  EXPECT_EQ(nearest_rank(values, 0.51), 30);
  EXPECT_EQ(nearest_rank(values, 1.0), 40);
  EXPECT_EQ(nearest_rank(values, 0.01), 10);
}

TEST(TimeSummary, LeavesOutPercentilesThatTheSampleCannotCarry) {
  std::vector<double> values(9);
  std::iota(values.begin(), values.end(), 1.0);
  EXPECT_FALSE(summarize_times(values).p90.has_value());
  values.push_back(10);
  EXPECT_EQ(summarize_times(values).p90, 9);
  EXPECT_FALSE(summarize_times(values).p95.has_value());
  EXPECT_FALSE(summarize_times(values).p99.has_value());
  values.resize(100);
  std::iota(values.begin(), values.end(), 1.0);
  EXPECT_EQ(summarize_times(values).p99, 99);
  EXPECT_EQ(summarize_times(values).max, 100);
}

// By hand from the binomial distribution: P(Binomial(6, 1/2) < 1) = 1/64, twice that is below 5 %;
// of 5 values it is 1/32, and twice that is above. 2 * P(Binomial(9, 1/2) < 2) = 2 * 10/512; 20 and
// 100 values are in Conover's table: 6th and 15th, 40th and 61st.
TEST(MedianInterval, IsMadeOfOrderStatistics) {
  std::vector<double> values;
  const auto upto = [&values](int n) {
    values.clear();
    for (int i = n; i >= 1; --i) values.push_back(i);
    return median_interval(values);
  };
  EXPECT_FALSE(upto(0).has_value());
  EXPECT_FALSE(upto(5).has_value());
  const auto expect = [&upto](int n, double low, double high) {
    const auto interval = upto(n);
    ASSERT_TRUE(interval.has_value()) << n;
    EXPECT_EQ(interval->low, low) << n;
    EXPECT_EQ(interval->high, high) << n;
  };
  expect(6, 1, 6);
  expect(8, 1, 8);
  expect(9, 2, 8);
  expect(20, 6, 15);
  expect(100, 40, 61);
  const auto many = upto(100'000);
  ASSERT_TRUE(many.has_value());
  EXPECT_NEAR(many->low, 50'000 - 1.96 * std::sqrt(100'000.0) / 2, 2);
}

// The 8th and the 18th of 25 hold the median of skewed values in 95.7 % of the draws: 87 of 2,000
// miss it, give or take 9.
TEST(MedianInterval, HoldsTheMedianWhateverTheDistribution) {
  int misses = 0;
  constexpr int kDraws = 2000;
  for (int draw = 0; draw < kDraws; ++draw) {
    const RandomStream random(static_cast<std::uint64_t>(draw), Stream::test);
    std::vector<double> values;
    for (std::uint64_t i = 0; i < 25; ++i) {
      values.push_back(-std::log(1 - random.uniform(i)));  // exponential, median ln 2
    }
    const auto interval = median_interval(values);
    if (interval->low > std::log(2) || interval->high < std::log(2)) ++misses;
  }
  EXPECT_NEAR(misses, 87, 4 * 9);
}

TEST(TimeSummary, OfNothingHasNoNumbers) {
  const TimeSummary summary = summarize_times({});
  EXPECT_EQ(summary.num_samples, 0);
  EXPECT_FALSE(summary.min || summary.p50 || summary.max);
}

TEST(RowSummary, CountsEmptyEntriesAndComparesTheLargestWithTheMean) {
  const std::vector<std::int64_t> rows = {0, 4, 0, 12};
  const RowSummary summary = summarize_rows(rows);
  EXPECT_EQ(summary.total, 16);
  EXPECT_EQ(summary.mean, 4);
  EXPECT_EQ(summary.p10, 0);
  EXPECT_EQ(summary.median, 0);
  EXPECT_EQ(summary.p90, 12);
  EXPECT_EQ(summary.max, 12);
  EXPECT_EQ(summary.max_over_mean, 3);
  EXPECT_EQ(summary.empty_fraction, 0.5);
}

TEST(RowSummary, OfZeroRowsHasNoImbalance) {
  const std::vector<std::int64_t> rows = {0, 0};
  EXPECT_FALSE(summarize_rows(rows).max_over_mean.has_value());
  EXPECT_EQ(summarize_rows(rows).empty_fraction, 1);
}

}  // namespace
}  // namespace epsweep
