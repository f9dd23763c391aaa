#include "report/arrival.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using testing::even_times;

TEST(Arrival, ByHand) {
  const std::vector<double> entered = {1, 4, 2}, left = {7, 6, 5};
  const Arrival arrival = arrival_of(entered, left);
  EXPECT_DOUBLE_EQ(arrival.skew_in_s, 3);
  EXPECT_DOUBLE_EQ(arrival.transfer_s, 3);
  EXPECT_EQ(arrival.last_in, 1);
}

// span = skew_in + transfer and local <= wait + transfer, whatever the times.
TEST(Arrival, PartsAddUpOnRandomTimes) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomStream random(seed, Stream::test);
    std::vector<double> entered, left;
    const auto ranks = 1 + static_cast<std::size_t>(random.below(0, 7));
    for (std::uint64_t r = 0; r < ranks; ++r) {
      entered.push_back(random.uniform(2 * r + 1));
      left.push_back(entered.back() + 3 * random.uniform(2 * r + 2));
    }
    const Arrival arrival = arrival_of(entered, left);
    const double first_in = *std::ranges::min_element(entered);
    const double last_in = *std::ranges::max_element(entered);
    const double span = *std::ranges::max_element(left) - first_in;
    EXPECT_NEAR(span, arrival.skew_in_s + arrival.transfer_s, 1e-12);
    for (std::size_t r = 0; r < ranks; ++r) {
      EXPECT_LE(left[r] - entered[r], last_in - entered[r] + arrival.transfer_s + 1e-12);
    }
  }
}

// The last rank comes 20 ms late and its own exchange looks shortest; everybody else waits.
TEST(ExchangeSummary, TheOneWhoIsLateMakesTheOthersWait) {
  TimingTable table = even_times(4, 10, 1e-3);
  for (int i = 0; i < 10; ++i) {
    table.at(2, i, 0, Stage::dispatch, Measure::begin_s) += 20e-3;
    for (int r = 0; r < 4; ++r) table.at(r, i, 0, Stage::dispatch, Measure::end_s) += 20e-3;
  }
  const ExchangeSummary late = summarize_exchange(table, Stage::dispatch, one_group(4));
  EXPECT_NEAR(*late.skew_in_s.p50, 20e-3, 1e-12);
  EXPECT_NEAR(*late.transfer_s.p50, 1e-3, 1e-12);
  EXPECT_EQ(late.last_in_row, 2);
  EXPECT_EQ(late.last_in_share, 1);
  for (const int r : {0, 1, 3}) {
    EXPECT_NEAR(late.wait_p50_s_of_row[static_cast<std::size_t>(r)], 20e-3, 1e-12);
  }
  EXPECT_NEAR(late.wait_p50_s_of_row[2], 0, 1e-12);
}

// Ranks 0 and 1, and 2 and 3, exchange among themselves: a late rank delays its own group only.
TEST(ExchangeSummary, GroupsDoNotWaitForEachOther) {
  TimingTable table = even_times(4, 10, 1.0);
  for (int i = 0; i < 10; ++i) {
    table.at(3, i, 0, Stage::combine, Measure::begin_s) += 5;
    for (const int r : {2, 3}) table.at(r, i, 0, Stage::combine, Measure::end_s) += 6;
  }
  const TableRows rows{.group_of_row = {0, 0, 1, 1}, .order_bound_s = 0};
  const ExchangeSummary summary = summarize_exchange(table, Stage::combine, rows);
  EXPECT_EQ(summary.wait_p50_s_of_row, (std::vector<double>{0, 0, 5, 0}));
  EXPECT_DOUBLE_EQ(*summary.skew_in_s.p50, 5);   // of the worse group
  EXPECT_DOUBLE_EQ(*summary.transfer_s.p50, 2);  // likewise; the other one's is 1
  EXPECT_EQ(summary.last_in_row, 3);  // in every iteration; nobody was late in the other group
  EXPECT_DOUBLE_EQ(summary.last_in_share, 1);
}

// Two layers: the sample of an iteration is their mean, and the p50 is over iterations.
TEST(ExchangeSummary, SamplesAreMeansOverLayers) {
  TimingTable table = even_times(2, 5, 1.0, 2);
  for (int i = 0; i < 5; ++i) {
    table.at(1, i, 1, Stage::dispatch, Measure::begin_s) += 0.1 * (i + 1);
  }
  const ExchangeSummary summary = summarize_exchange(table, Stage::dispatch, one_group(2));
  EXPECT_NEAR(*summary.skew_in_s.p50, 0.15, 1e-12);
  EXPECT_NEAR(summary.wait_p50_s_of_row[0], 0.15, 1e-12);
  EXPECT_NEAR(*summary.transfer_s.p50, (1 + 0.7) / 2, 1e-12);
  EXPECT_EQ(summary.last_in_row, 1);  // nobody was late in the first layer
  EXPECT_DOUBLE_EQ(summary.last_in_share, 0.5);
}

// Who came last is not said where clocks may be further apart than arrivals.
TEST(ExchangeSummary, ClocksThatCannotOrderNameNobody) {
  TimingTable table = even_times(2, 5, 1.0);
  for (int i = 0; i < 5; ++i) table.at(1, i, 0, Stage::dispatch, Measure::begin_s) += 0.2;
  TableRows rows = one_group(2);
  rows.order_bound_s = 0.1;
  EXPECT_EQ(summarize_exchange(table, Stage::dispatch, rows).last_in_row, 1);
  rows.order_bound_s = 0.3;
  EXPECT_FALSE(summarize_exchange(table, Stage::dispatch, rows).last_in_row.has_value());
}

}  // namespace
}  // namespace epsweep
