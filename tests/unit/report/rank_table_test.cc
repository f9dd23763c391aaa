#include "report/rank_table.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "report/point_record.h"
#include "report/sparkline.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::even_times;
using ::testing::HasSubstr;
using testing::measured_input;
using ::testing::Not;
using testing::sample_point;

TEST(Sparkline, HighestBlockIsWhat95PercentDoNotExceed) {
  // 20 values: the 19th of them in order is 8, and the spike of 1000 is drawn as it.
  std::vector<double> values(18, 1.0);
  values.push_back(8);
  values.push_back(1000);
  const SparkScale scale = spark_scale(values);
  EXPECT_EQ(scale.low, 1);
  EXPECT_EQ(scale.high, 8);
  EXPECT_EQ(sparkline(std::vector<double>{1, 2, 4.6, 8, 1000}, scale, 10), "▁▂▅██");
  EXPECT_EQ(sparkline(std::vector<double>{3, 3}, {3, 3}, 10), "▁▁");
}

TEST(Sparkline, BlocksOfManyValuesShowTheLargest) {
  EXPECT_EQ(sparkline(std::vector<double>{0, 7, 0, 0, 0, 0, 0, 0}, {0, 7}, 4), "█▁▁▁");
  EXPECT_EQ(sparkline(std::vector<double>{0, 0, 7}, {0, 7}, 2), "▁█");
}

// Rank r takes r+1 us more in expert_ffn than the 10 us of every other stage.
TimingTable growing_times(int num_ranks, int num_iterations = 4) {
  TimingTable table = even_times(num_ranks, num_iterations, 10e-6);
  for (int r = 0; r < num_ranks; ++r) {
    for (int i = 0; i < num_iterations; ++i) {
      table.at(r, i, 0, Stage::expert_ffn, Measure::end_s) += (r + 1) * 1e-6;
    }
  }
  return table;
}

Json record_of(const TimingTable& table) {
  PointRecordInput input = measured_input(sample_point(table.num_ranks(), 8));
  input.timings = testing::even_summary(table, 80e-6);
  return make_point_record(input);
}

std::size_t num_lines(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

TEST(RankTable, OwnTimesRowsAndTheSlowestMarked) {
  const TimingTable times = growing_times(4);
  const std::string table = rank_table(record_of(times), times, RankRows::few, "here");
  // 16 rows on 4 ranks; 71 to 74 us.
  EXPECT_THAT(table, HasSubstr("\n      0      0        0    71.0  11.0  4.00     0  ▁▁▁▁\n"));
  EXPECT_THAT(table, HasSubstr("\n>     3      0        3    74.0  14.0  4.00     0  ████\n"));
  EXPECT_THAT(table, Not(HasSubstr("left out")));
}

TEST(RankTable, WaitingInBothExchangesIsAddedUp) {
  TimingTable times = even_times(2, 4, 10e-6);
  for (int i = 0; i < 4; ++i) {
    times.at(1, i, 0, Stage::dispatch, Measure::begin_s) += 6e-6;
    times.at(1, i, 0, Stage::combine, Measure::begin_s) += 3e-6;
  }
  const std::string table = rank_table(record_of(times), times, RankRows::few, "here");
  EXPECT_THAT(table, HasSubstr("70.0  10.0  8.00  9.00  █"));
  EXPECT_THAT(table, HasSubstr("61.0  10.0  8.00     0  ▁"));
}

TEST(RankTable, OfAThousandRanksTheSlowestAndTheFastest) {
  std::vector<double> times;
  for (int r = 0; r < 1024; ++r) times.push_back(r % 2 == 0 ? r : 2048 - r);
  const std::vector<std::size_t> few = rows_to_show(times, RankRows::few);
  ASSERT_EQ(few.size(), 40U);
  EXPECT_EQ(few[0], 1U);    // 2047
  EXPECT_EQ(few[31], 63U);  // 1985
  EXPECT_EQ(few[32], 14U);
  EXPECT_EQ(few[39], 0U);
  EXPECT_EQ(rows_to_show(times, RankRows::all).size(), 1024U);
  EXPECT_EQ(rows_to_show(std::vector<double>(64, 1), RankRows::few).size(), 64U);
  EXPECT_EQ(rows_to_show(std::vector<double>(65, 1), RankRows::few).size(), 40U);
}

TEST(RankTable, SaysHowManyAreLeftOut) {
  const TimingTable times = growing_times(128, 2);
  Json record = record_of(growing_times(4));
  record["world_size"] = 128;
  record["point"]["ep_size"] = 128;
  const std::string few = rank_table(record, times, RankRows::few, "here");
  EXPECT_THAT(few, HasSubstr("88 of 128 ranks, between the 32 slowest and the 8 fastest, are left "
                             "out: --ranks all"));
  EXPECT_EQ(num_lines(few), 3U + 2U + 40U + 1U);
  EXPECT_EQ(num_lines(rank_table(record, times, RankRows::all, "here")), 3U + 2U + 128U);
}

TEST(RankTable, TimesOfOtherRanksAreRefused) {
  EXPECT_THROW(rank_table(record_of(growing_times(4)), growing_times(2), RankRows::few, "here"),
               ConfigError);
}

}  // namespace
}  // namespace epsweep
