// Tables of one point, read back in the words that are printed.
#include "report/stage_table.h"

#include <gmock/gmock.h>

#include "report/point_record.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using ::testing::AllOf;
using testing::even_chains;
using ::testing::HasSubstr;
using testing::measured_input;
using ::testing::Not;
using testing::sample_point;
using testing::skipped_input;

// Line of the table that begins with the word.
std::string line_of(const std::string& table, const std::string& word) {
  const std::size_t begin = table.find("\n" + word + " ");
  if (begin == std::string::npos) return "";
  return table.substr(begin + 1, table.find('\n', begin + 1) - begin - 1);
}

// 20 iterations of 10 us a stage; in all of them rank 1 is 6 us late into dispatch and all leave it
// 4 us later.
Json late_record() {
  const SweepPoint point = sample_point(2, 8);
  PointRecordInput input = measured_input(point);
  TimingTable table = testing::even_times(2, 20, 10e-6);
  for (int i = 0; i < 20; ++i) {
    const double begin_s = table.at(0, i, 0, Stage::dispatch, Measure::begin_s);
    table.at(1, i, 0, Stage::dispatch, Measure::begin_s) = begin_s + 6e-6;
  }
  input.timings = testing::even_summary(table, 80e-6);
  return make_point_record(input);
}

TEST(StageTable, SlowestWaitSkewTransferAndShare) {
  const std::string table = stage_table(late_record(), "here");
  // p50, interval, slowest, min, wait, skew, transfer, last in, cpu, %
  EXPECT_EQ(line_of(table, "dispatch"),
            "dispatch        10.0  10.0-10.0  0 (100%)  4.00  6.00 (rank 0)  6.00      4.00  1 "
            "(100%)  5.00   14.3");
  EXPECT_EQ(
      line_of(table, "router"),
      "router          10.0  10.0-10.0  0 (100%)  10.0              -     -         -         "
      "-  5.00   14.3");
  EXPECT_THAT(line_of(table, "all stages"), HasSubstr("70.0  70.0-70.0"));
  EXPECT_THAT(table, HasSubstr("Stages, regime aligned"));
  EXPECT_THAT(table, HasSubstr("Layer, regime chained (back to back, waiting included); +10.0 us"));
  // Nothing of the other regime is a share of this one's sum.
  EXPECT_THAT(line_of(table, "layer"), AllOf(HasSubstr("80.0"), Not(HasSubstr("114"))));
}

TEST(StageTable, NobodyWaitsWhereNobodyIsLate) {
  const Json record = make_point_record(measured_input(sample_point(2, 8)));
  EXPECT_THAT(line_of(stage_table(record, "here"), "combine"),
              HasSubstr("10.0     0     0      10.0  5.00"));
}

TEST(StageTable, PointsWithoutTimesHaveNone) {
  EXPECT_EQ(stage_table(make_point_record(skipped_input(sample_point(2, 8), "no")), "here"), "");
}

TEST(StageTable, RecordsOfNonsenseAreRefused) {
  Json record = late_record();
  record["world_size"] = 0;
  EXPECT_THROW(stage_table(record, "here"), ConfigError);
  record = late_record();
  record["stages"] = {{"dispatch", 3}};
  EXPECT_THAT(stage_table(record, "here"), HasSubstr("dispatch"));
}

}  // namespace
}  // namespace epsweep
