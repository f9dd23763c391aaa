#include "base/statistics.h"

#include <numeric>

#include <gtest/gtest.h>

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
  EXPECT_FALSE(summarize_times(values).p99.has_value());
  values.resize(100);
  std::iota(values.begin(), values.end(), 1.0);
  EXPECT_EQ(summarize_times(values).p99, 99);
  EXPECT_EQ(summarize_times(values).max, 100);
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
