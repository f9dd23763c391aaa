// Breakdowns of launches whose costs are known.
#include "report/breakdown.h"

#include <numeric>

#include <gtest/gtest.h>

#include "sim_case.h"

namespace epsweep {
namespace {

using testing::even_launch;

constexpr RankRates kRates{.flop_per_s = 1e12, .read_bytes_per_s = 1e9};
// Of every rank unless said otherwise: 100 us of weights, 50 us of operations, 50 rows.
constexpr FfnWork kEven{.routed_rows = 50,
                        .touched_experts = 1,
                        .flops = 50'000'000,
                        .weight_bytes = 100'000,
                        .weight_scale_bytes = 0};

struct Launch {
  DeclaredTimes times;
  BreakdownWork work;

  // expert_ffn of EP rank r in all groups takes `us` and has `work`.
  void set(int ep_rank, double us, const FfnWork& of_rank) {
    const int ep_size = static_cast<int>(work.ffn[0].size());
    work.ffn[0][static_cast<std::size_t>(ep_rank)] = of_rank;
    for (int row = ep_rank; row < times.num_rows(); row += ep_size) {
      times.own_s[static_cast<std::size_t>(row * kNumStages) +
                  static_cast<std::size_t>(Stage::expert_ffn)] = us * 1e-6;
    }
  }
  Breakdown breakdown() const {
    std::vector<int> ep_rank_of_row;
    const int ep_size = static_cast<int>(work.ffn[0].size());
    for (int row = 0; row < times.num_rows(); ++row) ep_rank_of_row.push_back(row % ep_size);
    const TimingTable table = simulate_aligned(times, {}, 3);
    return *break_down(table, testing::rows_of(times), ep_rank_of_row,
                       testing::simulated(times, {}, 3), work);
  }
};

Launch launch_of(int num_ranks, int ep_size) {
  Launch launch{.times = even_launch(num_ranks, ep_size), .work = {}};
  launch.work.ffn = {std::vector<FfnWork>(static_cast<std::size_t>(ep_size), kEven)};
  launch.work.rates = kRates;
  return launch;
}

FfnWork with_weights(std::int64_t bytes) {
  FfnWork work = kEven;
  work.weight_bytes = bytes;
  return work;
}

void expect_parts(const Breakdown& breakdown, const std::array<double, kNumParts>& us) {
  for (std::size_t i = 0; i < kNumParts; ++i) {
    EXPECT_NEAR(breakdown.parts_us[i], us[i], 0.01) << kPartNames[i];
  }
  EXPECT_NEAR(std::accumulate(breakdown.parts_us.begin(), breakdown.parts_us.end(), 0.0),
              breakdown.period_us, 1e-9);
}

TEST(Breakdown, IsTheStagesWhereRanksAreAlike) {
  const Breakdown breakdown = launch_of(8, 4).breakdown();
  EXPECT_NEAR(breakdown.period_us, 298, 0.01);
  expect_parts(breakdown, {5, 13, 4, 30, 200, 0, 0, 40, 6, 0});
  EXPECT_NEAR(*breakdown.model.weight_us, 100, 1e-9);
  EXPECT_NEAR(*breakdown.model.compute_us, 50, 1e-9);
  EXPECT_FALSE(breakdown.model.skew_floor_us.has_value());
}

// Weights of 160 us where the others have 100, and 60 us longer: the mean is 15 us above the
// others.
TEST(Breakdown, RowsExplainARankThatHasMore) {
  Launch launch = launch_of(8, 4);
  launch.set(1, 260, with_weights(160'000));
  expect_parts(launch.breakdown(), {5, 13, 4, 30, 215, 45, 0, 40, 6, 0});
}

// Half as fast as the roofline: 120 us longer for 60 us more.
TEST(Breakdown, RowsExplainWhatTheyCostInefficientKernels) {
  Launch launch = launch_of(8, 4);
  launch.set(1, 320, with_weights(160'000));
  expect_parts(launch.breakdown(), {5, 13, 4, 30, 230, 90, 0, 40, 6, 0});
}

TEST(Breakdown, EqualRowsDoNotExplainASlowHost) {
  Launch launch = launch_of(8, 4);
  launch.set(2, 280, kEven);
  expect_parts(launch.breakdown(), {5, 13, 4, 30, 200, 0, 80, 40, 6, 0});
}

// One more row in a thousand may take at most its own share of the time.
TEST(Breakdown, ATrifleOfRowsDoesNotExplainASlowHost) {
  Launch launch = launch_of(2, 2);
  launch.set(1, 280, with_weights(100'100));
  const Breakdown breakdown = launch.breakdown();
  EXPECT_LT(breakdown.at(LayerPart::ffn_rows), 0.2);
  EXPECT_NEAR(breakdown.at(LayerPart::uneven), 80, 0.3);
}

// The hot rank takes 60 us longer for its rows, but a slow one with a quarter of that longer still:
// what the slowest rank's own rows explain counts.
TEST(Breakdown, AHotRankDoesNotExcuseASlowerHost) {
  Launch launch = launch_of(8, 8);
  launch.set(1, 260, with_weights(160'000));
  launch.set(2, 300, kEven);
  const Breakdown breakdown = launch.breakdown();
  EXPECT_NEAR(breakdown.at(LayerPart::ffn_typical), 207.5, 0.01);  // 100 us + its mean roofline
  EXPECT_NEAR(breakdown.at(LayerPart::ffn_rows), 0, 0.01);
  EXPECT_NEAR(breakdown.at(LayerPart::uneven), 92.5, 0.01);
}

TEST(Breakdown, OtherStagesOfASlowRankAreUnevenToo) {
  Launch launch = launch_of(4, 4);
  launch.times.own_s[2 * kNumStages + static_cast<std::size_t>(Stage::router)] = 25e-6;
  expect_parts(launch.breakdown(), {5, 13, 4, 30, 200, 0, 20, 40, 6, 0});
}

TEST(Breakdown, WithoutRatesRowsAloneExplain) {
  Launch launch = launch_of(8, 4);
  launch.work.rates = std::nullopt;
  FfnWork twice = kEven;
  twice.routed_rows = 100;
  launch.set(1, 300, twice);
  const Breakdown breakdown = launch.breakdown();
  EXPECT_NEAR(breakdown.at(LayerPart::ffn_rows), 75, 0.01);
  EXPECT_FALSE(breakdown.model.weight_us.has_value());
}

// Uniform routing: one rank with 120 us of weights, three with 100. The mean is 105.
TEST(Breakdown, TheFloorIsWhatUniformRoutingWouldDo) {
  Launch launch = launch_of(8, 4);
  launch.set(1, 260, with_weights(160'000));
  launch.work.uniform_ffn = {{kEven, kEven, with_weights(120'000), kEven}};
  EXPECT_NEAR(*launch.breakdown().model.skew_floor_us, 15, 0.01);
  // Never more than there is.
  launch.work.uniform_ffn = {{kEven, kEven, with_weights(900'000), kEven}};
  EXPECT_NEAR(*launch.breakdown().model.skew_floor_us, 45, 0.01);
}

TEST(Breakdown, TheSlowerGroupCounts) {
  Launch launch = launch_of(4, 2);
  launch.times.own_s[3 * kNumStages + static_cast<std::size_t>(Stage::expert_ffn)] = 260e-6;
  // Rank 3 alone, of the second group.
  expect_parts(launch.breakdown(), {5, 13, 4, 30, 200, 0, 60, 40, 6, 0});
}

TEST(Breakdown, NeedsAChainedPass) {
  const Launch launch = launch_of(2, 2);
  const TimingTable table = simulate_aligned(launch.times, {}, 2);
  const TableRows rows = testing::rows_of(launch.times);
  EXPECT_FALSE(break_down(table, rows, {0, 1}, summarize(table, rows), launch.work).has_value());
}

}  // namespace
}  // namespace epsweep
