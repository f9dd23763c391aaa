// What holds of waiting and moving whatever the costs, faults and noise, to the last bit.
#include <gtest/gtest.h>

#include "base/chain_shape.h"
#include "base/random.h"
#include "sim_case.h"

namespace epsweep {
namespace {

struct RandomLaunch {
  DeclaredTimes times;
  SimConditions conditions;
};

RandomLaunch random_launch(std::uint64_t seed) {
  const RandomStream random(seed, Stream::test);
  std::uint64_t next = 0;
  const auto below = [&](std::uint64_t bound) { return random.below(next++, bound); };
  const int ep_size = 1 + static_cast<int>(below(5));
  const int num_ranks = ep_size * (1 + static_cast<int>(below(3)));
  RandomLaunch launch{
      .times = testing::even_launch(num_ranks, ep_size, 1 + static_cast<int>(below(3))),
      .conditions = {}};
  for (double& own_s : launch.times.own_s) own_s = random.uniform(next++) * 1e-3;
  std::vector<Fault> faults;
  for (std::uint64_t i = below(4); i > 0; --i) {
    Fault fault{.kind = FaultKind::delay,
                .rank = static_cast<int>(below(static_cast<std::uint64_t>(num_ranks))),
                .ep_size = {},
                .delay = {}};
    fault.delay = {.stage = static_cast<Stage>(below(kNumStages)),
                   .place = below(2) == 0 ? DelayPlace::before : DelayPlace::inside,
                   .us = static_cast<std::int64_t>(below(5000)),
                   .every = static_cast<std::int64_t>(below(3)),
                   .first = 0};
    faults.push_back(fault);
  }
  launch.conditions = testing::with_faults(launch.times, faults);
  launch.conditions.noise = {.relative = below(2) == 0 ? 0 : 0.3, .run = 0.1, .seed = seed};
  return launch;
}

// Of one exchange by one group, from its rows of the table.
void expect_identities(const TimingTable& table, int iteration, int layer, Stage stage,
                       const std::vector<int>& rows) {
  std::vector<double> a, b;
  for (const int row : rows) {
    a.push_back(table.at(row, iteration, layer, stage, Measure::begin_s));
    b.push_back(table.at(row, iteration, layer, stage, Measure::end_s));
  }
  const Arrival arrival = arrival_of(a, b);
  const double last_in = std::ranges::max(a);
  EXPECT_EQ(std::ranges::max(b) - std::ranges::min(a), arrival.skew_in_s + arrival.transfer_s);
  EXPECT_GE(arrival.transfer_s, 0);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    EXPECT_LE(b[r] - a[r], (last_in - a[r]) + arrival.transfer_s);
    EXPECT_GE(b[r], last_in);  // nobody leaves before the last one came
  }
}

TEST(SimIdentities, HoldInEveryExchangeOfRandomLaunches) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomLaunch launch = random_launch(seed);
    const TimingTable table = simulate_aligned(launch.times, launch.conditions, 4);
    const int num_groups = 1 + launch.times.group_of_row.back();
    for (int group = 0; group < num_groups; ++group) {
      std::vector<int> rows;
      for (int row = 0; row < launch.times.num_rows(); ++row) {
        if (launch.times.group_of_row[static_cast<std::size_t>(row)] == group) rows.push_back(row);
      }
      for (int i = 0; i < 4; ++i) {
        for (int l = 0; l < launch.times.num_layers; ++l) {
          for (const Stage stage : {Stage::count_exchange, Stage::dispatch, Stage::combine}) {
            expect_identities(table, i, l, stage, rows);
          }
        }
      }
    }
  }
}

// A chain cannot be shorter than any of its ranks' own stages, nor longer than stages that all
// start together: waiting for rows only is never worse.
TEST(SimIdentities, ChainsLieBetweenOwnTimesAndAlignedStages) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RandomLaunch launch = random_launch(seed);
    launch.conditions = SimConditions{};
    launch.times.num_layers = launch.times.num_routings = 1;
    const PointSummary summary = testing::simulated(launch.times, launch.conditions, 2);
    double most_own_s = 0;
    for (int row = 0; row < launch.times.num_rows(); ++row) {
      double own_s = 0;
      for (int s = 0; s < kNumStages; ++s) own_s += launch.times.at(0, row, static_cast<Stage>(s));
      most_own_s = std::max(most_own_s, own_s);
    }
    EXPECT_GE(*summary.period_p50_s(), most_own_s - 1e-11);
    EXPECT_LE(*summary.period_p50_s(), *summary.all_stages.slowest_s.p50 + 1e-11);
  }
}

// Of a chain only the fill of three quarters counts, and yet every step as often as any other.
TEST(SimIdentities, IterationsGoThroughTheSteps) {
  constexpr int kLayers = 2, kSteps = 3;
  DeclaredTimes times = testing::even_launch(2, 2, kLayers * kSteps);
  times.num_layers = kLayers;
  const auto ffn_us = [](int routing) { return 100.0 + 10 * routing; };
  for (int cell = 0; cell < kLayers * kSteps * 2; ++cell) {
    times.own_s[static_cast<std::size_t>(cell * kNumStages) +
                static_cast<std::size_t>(Stage::expert_ffn)] = ffn_us(cell / 2) * 1e-6;
  }
  const TimingTable table = simulate_aligned(times, {}, 4);
  for (int i = 0; i < 4; ++i) {
    for (int l = 0; l < kLayers; ++l) {
      EXPECT_NEAR(table.wall_s(0, i, l, Stage::expert_ffn) * 1e6, ffn_us(i % kSteps * kLayers + l),
                  0.01);
    }
  }
  const int chain_layers = chain_layers_for(kLayers);
  std::array<int, kSteps> counted{};
  for (int chain = 0; chain < kSteps; ++chain) {
    for (int position = fill_layers_of(chain_layers); position < chain_layers; ++position) {
      const int routing = routing_at(kLayers, kLayers * kSteps, chain, position);
      EXPECT_EQ(routing % kLayers, position % kLayers);
      ++counted[static_cast<std::size_t>(routing / kLayers)];
    }
  }
  EXPECT_EQ(counted, (std::array{3, 3, 3}));
}

TEST(SimIdentities, TheSameInputsGiveTheSameTables) {
  const RandomLaunch launch = random_launch(7);
  const TimingTable a = simulate_aligned(launch.times, launch.conditions, 5);
  const TimingTable b = simulate_aligned(launch.times, launch.conditions, 5);
  EXPECT_TRUE(std::ranges::equal(a.values(), b.values()));
  // More iterations begin with the same ones.
  const TimingTable longer = simulate_aligned(launch.times, launch.conditions, 9);
  EXPECT_EQ(longer.at(0, 4, 0, Stage::combine, Measure::end_s),
            a.at(0, 4, 0, Stage::combine, Measure::end_s));
}

// Marks are read from a rank's own clock; what happens does not depend on it.
TEST(RankClock, OffsetAndDriftAreInTheMarksAlone) {
  const DeclaredTimes times = testing::even_launch(2, 2);
  SimConditions conditions;
  const TimingTable clean = simulate_aligned(times, conditions, 10);
  conditions.clock_of_row = {{},
                             {.source = ClockSource::injected, .offset_s = 5e-3, .drift_ppm = 50}};
  const TimingTable read = simulate_aligned(times, conditions, 10);
  const double t = clean.at(1, 9, 0, Stage::combine, Measure::begin_s);
  EXPECT_EQ(read.at(0, 9, 0, Stage::combine, Measure::begin_s), t);
  EXPECT_NEAR(read.at(1, 9, 0, Stage::combine, Measure::begin_s), t + 5e-3 + 50e-6 * t, 2e-12);
}

}  // namespace
}  // namespace epsweep
