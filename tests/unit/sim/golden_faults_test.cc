// The ruler is tested: known delays on a virtual clock, and the report has to find each, exactly.
#include <gmock/gmock.h>

#include "sim_case.h"

namespace epsweep {
namespace {

using testing::even_launch;
using testing::exchange_of;
using testing::injected;
using testing::stage_of;
using testing::us;

constexpr int kIterations = 20;
constexpr Stage kExchanges[] = {Stage::count_exchange, Stage::dispatch, Stage::combine};

// To the last bit.
void expect_same(const TimeSummary& a, const TimeSummary& b, const std::string& what) {
  EXPECT_EQ(a.min, b.min) << what;
  EXPECT_EQ(a.p50, b.p50) << what;
  EXPECT_EQ(a.max, b.max) << what;
}

void expect_same_stages_but(const PointSummary& a, const PointSummary& b,
                            std::initializer_list<Stage> others) {
  for (int s = 0; s < kNumStages; ++s) {
    const auto stage = static_cast<Stage>(s);
    if (std::ranges::find(others, stage) != others.end()) continue;
    expect_same(stage_of(a, stage).slowest_s, stage_of(b, stage).slowest_s,
                std::string(to_string(stage)));
  }
}

TEST(GoldenTimes, WithoutFaultsTheReportSaysWhatWasDeclared) {
  const PointSummary clean = injected(even_launch(8, 8), {}, kIterations);
  EXPECT_EQ(stage_of(clean, Stage::router).slowest_s.p50, us(5));
  EXPECT_EQ(stage_of(clean, Stage::expert_ffn).slowest_s.p50, us(200));
  EXPECT_EQ(exchange_of(clean, Stage::dispatch).transfer_s.p50, us(30));
  EXPECT_EQ(exchange_of(clean, Stage::combine).transfer_s.max, us(40));
  for (const Stage stage : kExchanges) {
    EXPECT_EQ(exchange_of(clean, stage).skew_in_s.max, 0);
    EXPECT_FALSE(exchange_of(clean, stage).last_in_row.has_value());
  }
  const double all_us = 5 + 13 + 4 + 30 + 200 + 40 + 6;
  EXPECT_NEAR(*clean.all_stages.slowest_s.p50, all_us * 1e-6, 1e-11);
  EXPECT_NEAR(*clean.period_p50_s(), all_us * 1e-6, 1e-11);
  EXPECT_DOUBLE_EQ(*clean.chain->convergence, 1);
}

// Three layers, of which a chain is two rounds: positions 2 and 5 are the slow one.
TEST(GoldenTimes, ChainsGoThroughTheLayersInTurn) {
  DeclaredTimes launch = even_launch(2, 2, 3);
  for (std::size_t row = 0; row < 2; ++row) {
    launch.own_s[(2 * 2 + row) * kNumStages + static_cast<std::size_t>(Stage::expert_ffn)] = 1e-3;
  }
  const ChainTable table = simulate_chained(launch, {}, 2);
  ASSERT_EQ(table.chain_layers(), 6);
  for (int position = 0; position < 6; ++position) {
    EXPECT_NEAR(table.end_s(1, 1, position) - table.begin_s(1, 1, position),
                position % 3 == 2 ? 1098e-6 : 298e-6, 1e-11);
  }
}

// Seven ranks wait, one does not; nothing moves slower for it.
TEST(GoldenFaults, BeforeDispatchOnRankFive) {
  const DeclaredTimes launch = even_launch(8, 8);
  const PointSummary clean = injected(launch, {}, kIterations);
  const PointSummary late = injected(launch, {"delay:rank=5:stage=dispatch:us=20000"}, kIterations);
  const ExchangeSummary& dispatch = exchange_of(late, Stage::dispatch);
  EXPECT_EQ(dispatch.skew_in_s.min, us(20000));
  EXPECT_EQ(dispatch.skew_in_s.max, us(20000));
  EXPECT_EQ(dispatch.last_in_row, 5);
  EXPECT_EQ(dispatch.last_in_share, 1);
  for (std::size_t row = 0; row < 8; ++row) {
    EXPECT_EQ(dispatch.wait_p50_s_of_row[row], row == 5 ? 0 : us(20000)) << row;
  }
  for (const Stage stage : kExchanges) {
    expect_same(exchange_of(late, stage).transfer_s, exchange_of(clean, stage).transfer_s,
                std::string(to_string(stage)));
  }
  EXPECT_EQ(exchange_of(late, Stage::combine).skew_in_s.max, 0);
  expect_same_stages_but(late, clean, {Stage::dispatch});
  EXPECT_NEAR(*late.period_p50_s() - *clean.period_p50_s(), 20e-3, 1e-11);
}

// One slow stage: its rank is named, and in a chain everybody pays.
TEST(GoldenFaults, InsideTheFfnOnRankTwo) {
  const DeclaredTimes launch = even_launch(8, 8);
  const PointSummary clean = injected(launch, {}, kIterations);
  const PointSummary slow =
      injected(launch, {"delay:rank=2:stage=expert_ffn:us=5000:place=inside"}, kIterations);
  const StageSummary& ffn = stage_of(slow, Stage::expert_ffn);
  EXPECT_EQ(ffn.slowest_rank, 2);
  EXPECT_EQ(ffn.slowest_rank_share, 1);
  EXPECT_EQ(ffn.slowest_s.p50, us(200) + us(5000));
  EXPECT_EQ(ffn.fastest_rank_p50_s, us(200));
  EXPECT_EQ(slow.all_stages.slowest_rank, 2);
  expect_same_stages_but(slow, clean, {Stage::expert_ffn});
  for (const Stage stage : kExchanges) EXPECT_EQ(exchange_of(slow, stage).skew_in_s.max, 0);
  EXPECT_NEAR(*slow.period_p50_s() - *clean.period_p50_s(), 5e-3, 1e-11);
}

// In a chain the others pay in combine, so their layers take as long as the slow rank's.
TEST(GoldenFaults, InAChainAllRanksTakeAsLongAsTheSlowOne) {
  const DeclaredTimes launch = even_launch(4, 4);
  const ChainTable table = simulate_chained(
      launch,
      testing::with_faults(launch,
                           {parse_fault("delay:rank=2:stage=expert_ffn:us=5000:place=inside")}),
      3);
  for (int row = 0; row < 4; ++row) {
    for (int position = 1; position < table.chain_layers(); ++position) {
      EXPECT_EQ(table.begin_s(row, 1, position), table.end_s(row, 1, position - 1));
      EXPECT_EQ(table.end_s(row, 1, position), table.end_s(2, 1, position)) << row;
    }
  }
}

// Of the two ranks at its ends only the transfers grow, and nobody waits.
// Nobody waits for a rank that copies by itself: the others' chains are as without the delay.
TEST(GoldenFaults, LocalCopiesWaitForNobody) {
  DeclaredTimes times = testing::even_launch(4, 4);
  times.exchanges = Exchanges::local_copies;
  std::vector<Fault> faults = {parse_fault("delay:rank=2:stage=permute:us=1000")};
  const ChainTable table = simulate_chained(times, testing::with_faults(times, faults), 1);
  const int last = table.chain_layers() - 1;
  for (const int rank : {0, 1, 3}) {
    EXPECT_NEAR(table.end_s(rank, 0, last) - table.begin_s(rank, 0, 0), 4 * 298e-6, 1e-11) << rank;
  }
  EXPECT_NEAR(table.end_s(2, 0, last) - table.begin_s(2, 0, 0), 4 * 1298e-6, 1e-11);
}

TEST(GoldenFaults, OneSlowLink) {
  DeclaredTimes launch = even_launch(8, 8);
  const PointSummary clean = injected(launch, {}, kIterations);
  for (const std::size_t row : {2U, 5U}) {
    for (const Stage stage : {Stage::dispatch, Stage::combine}) {
      launch.own_s[row * kNumStages + static_cast<std::size_t>(stage)] += 300e-6;
    }
  }
  const PointSummary slow = injected(launch, {}, kIterations);
  EXPECT_EQ(exchange_of(slow, Stage::dispatch).transfer_s.p50, us(330));
  EXPECT_EQ(exchange_of(slow, Stage::combine).transfer_s.p50, us(340));
  for (const Stage stage : kExchanges) EXPECT_EQ(exchange_of(slow, stage).skew_in_s.max, 0);
  expect_same_stages_but(slow, clean, {Stage::dispatch, Stage::combine});
}

TEST(GoldenFaults, StragglersThatTakeTurns) {
  const PointSummary times =
      injected(even_launch(8, 8),
               {"delay:rank=1:stage=expert_ffn:us=300:place=inside:every=2:first=0",
                "delay:rank=6:stage=expert_ffn:us=300:place=inside:every=2:first=1",
                "delay:rank=3:stage=combine:us=100:every=2:first=0",
                "delay:rank=4:stage=combine:us=100:every=2:first=1"},
               kIterations);
  EXPECT_EQ(stage_of(times, Stage::expert_ffn).slowest_rank, 1);  // the first of two
  EXPECT_EQ(stage_of(times, Stage::expert_ffn).slowest_rank_share, 0.5);
  EXPECT_EQ(stage_of(times, Stage::expert_ffn).slowest_s.min, us(200) + us(300));
  const ExchangeSummary& combine = exchange_of(times, Stage::combine);
  EXPECT_EQ(combine.last_in_row, 3);
  EXPECT_EQ(combine.last_in_share, 0.5);
  EXPECT_EQ(combine.skew_in_s.min, us(100));
}

TEST(GoldenFaults, SpikeInTheFirstIteration) {
  const DeclaredTimes launch = even_launch(8, 8);
  const PointSummary clean = injected(launch, {}, kIterations);
  const PointSummary spiked = injected(
      launch, {"delay:rank=0:stage=expert_ffn:us=9000:place=inside:every=0:first=0"}, kIterations);
  EXPECT_EQ(stage_of(spiked, Stage::expert_ffn).slowest_s.p50,
            stage_of(clean, Stage::expert_ffn).slowest_s.p50);
  EXPECT_EQ(stage_of(spiked, Stage::expert_ffn).slowest_s.max, us(200) + us(9000));
  EXPECT_EQ(*spiked.all_stages.slowest_s.p50, *clean.all_stages.slowest_s.p50);
  const std::vector<std::string> warnings =
      pass_warnings("stages", spiked.pass, spiked.all_stages.samples_s);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], ::testing::HasSubstr("first timed iteration took 9298.0 us"));
  EXPECT_TRUE(pass_warnings("stages", clean.pass, clean.all_stages.samples_s).empty());
}

// Ranks 0 to 3 and 4 to 7 are groups of their own.
TEST(GoldenFaults, AGroupWaitsForItsOwnRanksOnly) {
  const DeclaredTimes launch = even_launch(8, 4);
  const PointSummary late = injected(launch, {"delay:rank=5:stage=combine:us=700"}, kIterations);
  const ExchangeSummary& combine = exchange_of(late, Stage::combine);
  for (std::size_t row = 0; row < 8; ++row) {
    const bool waits = row >= 4 && row != 5;
    EXPECT_EQ(combine.wait_p50_s_of_row[row], waits ? us(700) : 0) << row;
  }
  EXPECT_EQ(combine.last_in_row, 5);
  EXPECT_EQ(combine.last_in_share, 1);
  EXPECT_EQ(combine.transfer_s.p50, us(40));
  // A chain of the other group goes on as before.
  EXPECT_NEAR(late.chain->layer_p50_s_of_rank[0], 298e-6, 1e-11);
  EXPECT_NEAR(late.chain->layer_p50_s_of_rank[4], 298e-6 + 700e-6, 1e-11);
}

// A delay inside an exchange is one of the exchange: it moves later, for everybody.
TEST(GoldenFaults, InsideAnExchangeIsTransfer) {
  const PointSummary slow =
      injected(even_launch(4, 4), {"delay:rank=1:stage=dispatch:us=50:place=inside"}, kIterations);
  EXPECT_EQ(exchange_of(slow, Stage::dispatch).skew_in_s.max, 0);
  EXPECT_EQ(exchange_of(slow, Stage::dispatch).transfer_s.p50, us(30) + us(50));
}

}  // namespace
}  // namespace epsweep
