// Marks of ranks that read different clocks come onto one axis.
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "app/point_clock.h"
#include "base/error.h"
#include "faults/faults.h"
#include "report/timing_table.h"
#include "support/program.h"

namespace epsweep {
namespace {

// Reads rank 0's clock, and loses 5 ms, then 50 ppm over 10 s.
PointClock same_clock() {
  return {.reads = {},
          .domain = 0,
          .before = {.own_s = 200, .offset_s = 0, .bound_s = 0},
          .after = {.own_s = 210, .offset_s = 0, .bound_s = 0},
          .align_s = 0};
}
PointClock slow_clock() {
  return {.reads = {},
          .domain = 1,
          .before = {.own_s = 100, .offset_s = 0.005, .bound_s = 2e-6},
          .after = {.own_s = 110, .offset_s = 0.0055, .bound_s = 3e-6},
          .align_s = 0};
}

TEST(PointClock, TravelsToRankZeroUnchanged) {
  const AlignedClock clock =
      aligned_clock(parse_json(to_json_line(clock_facts_json(slow_clock())), "facts"));
  EXPECT_EQ(clock.domain, 1);
  EXPECT_EQ(clock.map.from_s, 100);
  EXPECT_EQ(clock.map.to_s, 110);
  EXPECT_EQ(clock.map.offset_s, 0.005);
  EXPECT_EQ(clock.map.bound_s, 3e-6);
}

TEST(PointClock, MovesBeginAndEndOfEachRankButNotCpuTime) {
  const std::vector<AlignedClock> clocks = {aligned_clock(clock_facts_json(same_clock())),
                                            aligned_clock(clock_facts_json(slow_clock()))};
  // [rank][two stages][begin, end, cpu]
  std::vector<double> values = {201, 202, 0.5, 203, 204, 0.25,  //
                                100, 105, 0.5, 105, 110, 0.25};
  put_on_common_axis(clocks, 3, values);
  const std::vector<double> expected = {201,     202,       0.5, 203,       204,      0.25,
                                        100.005, 105.00525, 0.5, 105.00525, 110.0055, 0.25};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_DOUBLE_EQ(values[i], expected[i]) << i;
  std::vector<double> uneven(9);
  EXPECT_THROW(put_on_common_axis(clocks, 3, uneven), RunError);
}

// Ranks of one domain share what their clock is off by; of two domains both may be off.
TEST(PointClock, OrderBoundIsOfTwoDifferentClocks) {
  const AlignedClock same = aligned_clock(clock_facts_json(same_clock()));
  const AlignedClock slow = aligned_clock(clock_facts_json(slow_clock()));
  AlignedClock other = slow;
  other.domain = 2;
  other.map.bound_s = 1e-6;
  EXPECT_EQ(order_bound_s({same, same}), 0);
  EXPECT_EQ(order_bound_s({slow, slow}), 0);
  EXPECT_DOUBLE_EQ(order_bound_s({same, slow, slow}), 3e-6);
  EXPECT_DOUBLE_EQ(order_bound_s({same, slow, other}), 4e-6);
}

TEST(PointClock, ReportNamesTheWorstDriftAndEveryBound) {
  const AlignedClock same = aligned_clock(clock_facts_json(same_clock()));
  AlignedClock slow = aligned_clock(clock_facts_json(slow_clock()));
  AlignedClock fast = slow;
  fast.domain = 2;
  fast.map.slope = -80e-6;
  const ClockReport report = clock_report({same, slow, fast, slow});
  EXPECT_EQ(report.domains, 3);
  EXPECT_EQ(report.bound_s_of_rank, (std::vector<double>{0, 3e-6, 3e-6, 3e-6}));
  EXPECT_NEAR(report.worst_drift_ppm.value(), -80, 1e-9);
  EXPECT_NEAR(report.worst_drift_bound_ppm.value(), 0.5, 1e-9);
  const ClockReport alone = clock_report({same, same});
  EXPECT_EQ(alone.domains, 1);
  EXPECT_FALSE(alone.worst_drift_ppm.has_value());
  EXPECT_FALSE(alone.worst_drift_bound_ppm.has_value());
}

TEST(SlowClock, IsReadFromTheCommandLine) {
  const Fault fault = parse_fault("slow_clock:rank=2:offset_ms=-7.5:drift_ppm=20");
  EXPECT_EQ(fault.kind, FaultKind::slow_clock);
  EXPECT_EQ(fault.rank, 2);
  EXPECT_EQ(fault.offset_ms, -7.5);
  EXPECT_EQ(fault.drift_ppm, 20);
  EXPECT_EQ(parse_fault("slow_clock").offset_ms, 5);
  EXPECT_EQ(parse_fault("slow_clock").drift_ppm, 50);
  for (const char* bad :
       {"slow_clock:offset_ms=", "slow_clock:offset_ms=nan", "slow_clock:offset_ms=1e9",
        "slow_clock:drift_ppm=201", "slow_clock:drift_ppm=5x", "slow_clock:rank=1:ep_size=2",
        "slow_clock:us=5", "drop_row:offset_ms=5", "drop_row:drift_ppm=5"}) {
    EXPECT_THROW(parse_fault(bad), ConfigError) << bad;
  }
}

TEST(SlowClock, IsBehindAndLosesTime) {
  const std::vector<Fault> faults = {parse_fault("drop_row:rank=1"),
                                     parse_fault("slow_clock:rank=1")};
  const RankClock clock = clock_with_faults(faults, 1);
  EXPECT_EQ(clock.source, ClockSource::injected);
  EXPECT_NEAR(clock.at(clock.origin_s) - clock.origin_s, -0.005, 1e-9);
  EXPECT_NEAR(clock.at(clock.origin_s + 10) - clock.at(clock.origin_s), 10 - 0.0005, 1e-9);
  EXPECT_EQ(clock_with_faults(faults, 0).source, ClockSource::host);
  EXPECT_EQ(clock_with_faults({}, 1).source, ClockSource::host);
}

struct ClockRun {
  ProgramResult result;
  Json record;
  TimingTable times{1, 1, 1};
};

ClockRun run_with(int ranks, const std::string& options) {
  const TempDir dir;
  const std::string ep_sizes = "ep_sizes: [" + std::to_string(ranks) + "]";
  ClockRun run;
  run.result = run_on_ranks(
      ranks, "run " +
                 dir.write("x.yaml", toy_experiment({ep_sizes, "layers: 2", "iterations: 10",
                                                     "concurrency: {fixed_global: [64]}"})) +
                 " --out " + dir.path("out") + options);
  if (run.result.exit_code != 0) return run;
  run.record = records_of(dir.path("out")).at(0);
  run.times = read_npy(dir.path("out/" + run.record["timings_file"].get<std::string>()));
  return run;
}

// By how much the worst end of an exchange lies before another rank's begin: none can finish before
// all have begun, since every rank has rows for every other. At most 0 on one clock.
double worst_contradiction_s(const ClockRun& run) {
  const TimingTable& times = run.times;
  const Json& bounds = run.record["clock"]["bound_us_of_rank"];
  double worst_s = -1;
  for (const Stage stage : {Stage::dispatch, Stage::combine}) {
    for (int i = 0; i < times.num_iterations(); ++i) {
      for (int layer = 0; layer < times.num_layers(); ++layer) {
        for (int a = 0; a < times.num_ranks(); ++a) {
          for (int b = 0; b < times.num_ranks(); ++b) {
            const double both_s = a == b ? 0
                                         : (bounds[static_cast<std::size_t>(a)].get<double>() +
                                            bounds[static_cast<std::size_t>(b)].get<double>()) *
                                               1e-6;
            worst_s = std::max(worst_s, times.at(b, i, layer, stage, Measure::begin_s) -
                                            times.at(a, i, layer, stage, Measure::end_s) - both_s);
          }
        }
      }
    }
  }
  return worst_s;
}

constexpr double kRounding_s = 1e-9;

TEST(SlowClock, MarksOfAllRanksAreOnOneAxis) {
  const ClockRun run = run_with(2, " --inject slow_clock:rank=1");
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  const Json& clock = run.record["clock"];
  EXPECT_EQ(clock["domains"], 2);
  ASSERT_EQ(clock["bound_us_of_rank"].size(), 2U);
  EXPECT_EQ(clock["bound_us_of_rank"][0], 0);
  EXPECT_GT(clock["bound_us_of_rank"][1].get<double>(), 0);
  EXPECT_EQ(clock["worst_bound_us"], clock["bound_us_of_rank"][1]);
  EXPECT_NEAR(clock["worst_drift_ppm"].get<double>(), 50,
              clock["worst_drift_bound_ppm"].get<double>() + 0.01);
  EXPECT_GT(run.record["harness_s"]["align"].get<double>(), 0);
  EXPECT_LE(worst_contradiction_s(run), kRounding_s);
}

// Rank 0's own clock is the axis, whatever is wrong with it.
TEST(SlowClock, OfRankZeroAndOthersIsUndoneToo) {
  const ClockRun run = run_with(4,
                                " --inject slow_clock:rank=0 --inject slow_clock:rank=3"
                                ":offset_ms=-40:drift_ppm=-30");
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_EQ(run.record["clock"]["domains"], 3);
  EXPECT_EQ(run.record["clock"]["bound_us_of_rank"][0], 0);
  EXPECT_EQ(run.record["clock"]["bound_us_of_rank"][1], run.record["clock"]["bound_us_of_rank"][2]);
  EXPECT_LE(worst_contradiction_s(run), kRounding_s);
}

TEST(SlowClock, NoneMeansOneDomainAndExactMarks) {
  const ClockRun run = run_with(2, "");
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  const Json& clock = run.record["clock"];
  EXPECT_EQ(clock["domains"], 1);
  EXPECT_EQ(clock["worst_bound_us"], 0);
  EXPECT_TRUE(clock["worst_drift_ppm"].is_null());
  EXPECT_LE(worst_contradiction_s(run), kRounding_s);
}

}  // namespace
}  // namespace epsweep
