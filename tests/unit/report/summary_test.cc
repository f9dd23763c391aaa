#include "report/summary.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/chain_shape.h"
#include "base/random.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using testing::even_times;
using testing::stages_summary;

TimingTable random_table(int ranks, int iterations, int layers, std::uint64_t seed) {
  const RandomStream random(seed, Stream::test);
  std::vector<double> values(static_cast<std::size_t>(ranks * iterations * layers) * kNumStages *
                             kNumMeasures);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.uniform(i);
  TimingTable table(ranks, iterations, layers, std::move(values));
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < iterations; ++i) {
      for (int l = 0; l < layers; ++l) {
        for (int s = 0; s < kNumStages; ++s) {
          const auto stage = static_cast<Stage>(s);
          const double begin = table.at(r, i, l, stage, Measure::begin_s) + 2 * s;
          table.at(r, i, l, stage, Measure::begin_s) = begin;
          table.at(r, i, l, stage, Measure::end_s) += begin;
        }
      }
    }
  }
  return table;
}

// Straight from the definitions in summary.h, rank loop innermost.
struct BruteForce {
  std::vector<double> slowest, fastest, cpu;
  std::vector<int> times_slowest;
  double max_of_means = 0;
};

template <typename Wall, typename Cpu>
BruteForce brute_force(const TimingTable& t, const Wall& wall, const Cpu& cpu) {
  BruteForce result;
  result.times_slowest.assign(static_cast<std::size_t>(t.num_ranks()), 0);
  for (int i = 0; i < t.num_iterations(); ++i) {
    double slowest = 0, fastest = 0, cpu_sum = 0;
    for (int l = 0; l < t.num_layers(); ++l) {
      std::vector<double> of_rank;
      for (int r = 0; r < t.num_ranks(); ++r) of_rank.push_back(wall(r, i, l));
      const auto max = std::max_element(of_rank.begin(), of_rank.end());
      const auto rank = static_cast<int>(max - of_rank.begin());
      slowest += *max / t.num_layers();
      fastest += *std::min_element(of_rank.begin(), of_rank.end()) / t.num_layers();
      cpu_sum += cpu(rank, i, l) / t.num_layers();
      ++result.times_slowest[static_cast<std::size_t>(rank)];
    }
    result.slowest.push_back(slowest);
    result.fastest.push_back(fastest);
    result.cpu.push_back(cpu_sum);
  }
  for (int r = 0; r < t.num_ranks(); ++r) {
    double sum = 0;
    for (int i = 0; i < t.num_iterations(); ++i) {
      for (int l = 0; l < t.num_layers(); ++l) sum += wall(r, i, l);
    }
    result.max_of_means =
        std::max(result.max_of_means, sum / (t.num_iterations() * t.num_layers()));
  }
  return result;
}

// A rank's own stages added up are one cell; the samples are those of the stages added up. CPU of
// the stages that do not wait for messages.
BruteForce brute_force_all_stages(const TimingTable& t) {
  TimingTable whole(t.num_ranks(), t.num_iterations(), 1);
  for (int r = 0; r < t.num_ranks(); ++r) {
    for (int i = 0; i < t.num_iterations(); ++i) {
      double wall = 0, cpu = 0;
      for (int l = 0; l < t.num_layers(); ++l) {
        for (int s = 0; s < kNumStages; ++s) wall += t.wall_s(r, i, l, static_cast<Stage>(s));
        for (const Stage stage :
             {Stage::router, Stage::permute, Stage::expert_ffn, Stage::unpermute}) {
          cpu += t.at(r, i, l, stage, Measure::cpu_s);
        }
      }
      whole.at(r, i, 0, Stage::router, Measure::end_s) = wall / t.num_layers();
      whole.at(r, i, 0, Stage::router, Measure::cpu_s) = cpu / t.num_layers();
    }
  }
  BruteForce result = brute_force(
      whole, [&](int r, int i, int l) { return whole.wall_s(r, i, l, Stage::router); },
      [&](int r, int i, int l) { return whole.at(r, i, l, Stage::router, Measure::cpu_s); });
  std::ranges::fill(result.slowest, 0);
  for (int s = 0; s < kNumStages; ++s) {
    const auto wall = [&](int r, int i, int l) { return t.wall_s(r, i, l, static_cast<Stage>(s)); };
    const BruteForce stage = brute_force(t, wall, [](int, int, int) { return 0.0; });
    for (std::size_t i = 0; i < stage.slowest.size(); ++i) result.slowest[i] += stage.slowest[i];
  }
  return result;
}

void expect_equal(const StageSummary& summary, const BruteForce& expected) {
  const auto most = std::max_element(expected.times_slowest.begin(), expected.times_slowest.end());
  double total = 0;
  for (const int count : expected.times_slowest) total += count;
  EXPECT_NEAR(*summary.slowest_s.p50, nearest_rank(expected.slowest, 0.5), 1e-12);
  EXPECT_NEAR(*summary.slowest_s.p90, nearest_rank(expected.slowest, 0.9), 1e-12);
  EXPECT_NEAR(*summary.slowest_s.max, nearest_rank(expected.slowest, 1.0), 1e-12);
  EXPECT_NEAR(summary.fastest_rank_p50_s, nearest_rank(expected.fastest, 0.5), 1e-12);
  EXPECT_NEAR(summary.slowest_rank_cpu_p50_s, nearest_rank(expected.cpu, 0.5), 1e-12);
  EXPECT_NEAR(summary.max_of_means_s, expected.max_of_means, 1e-12);
  EXPECT_NEAR(summary.first_sample_s, expected.slowest.front(), 1e-12);
  EXPECT_EQ(summary.slowest_rank, most - expected.times_slowest.begin());
  EXPECT_NEAR(summary.slowest_rank_share, *most / total, 1e-12);
  double mean = 0;
  for (const double sample : expected.slowest) mean += sample;
  EXPECT_LE(summary.max_of_means_s, mean / static_cast<double>(expected.slowest.size()) + 1e-12);
}

TEST(Summary, MatchesTheDefinitionsOnRandomTables) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 5), layers = 1 + static_cast<int>(seed % 3);
    const TimingTable table = random_table(ranks, 11 + static_cast<int>(seed), layers, seed);
    const PointSummary summary = stages_summary(table);
    for (int s = 0; s < kNumStages; ++s) {
      const auto stage = static_cast<Stage>(s);
      expect_equal(
          summary.stages[static_cast<std::size_t>(s)],
          brute_force(
              table, [&](int r, int i, int l) { return table.wall_s(r, i, l, stage); },
              [&](int r, int i, int l) { return table.at(r, i, l, stage, Measure::cpu_s); }));
    }
    expect_equal(summary.all_stages, brute_force_all_stages(table));
  }
}

// Two ranks, each slow in one stage: no rank alone takes what ranks that start together do.
TEST(Summary, AllStagesAddTheSlowestOfEach) {
  TimingTable table = even_times(2, 1, 1.0);
  table.at(0, 0, 0, Stage::router, Measure::end_s) += 2;
  table.at(1, 0, 0, Stage::permute, Measure::end_s) += 3;
  const StageSummary all = stages_summary(table).all_stages;
  EXPECT_DOUBLE_EQ(*all.slowest_s.p50, 7 + 2 + 3);
  EXPECT_EQ(all.slowest_rank, 1);
  EXPECT_DOUBLE_EQ(all.max_of_means_s, 7 + 3);
}

TEST(Summary, RankVectorsAreEachRanksOwnP50) {
  TimingTable table = even_times(3, 5, 1.0, 2);
  for (int i = 0; i < 5; ++i) {
    table.at(1, i, 0, Stage::expert_ffn, Measure::end_s) += i;  // mean over layers 1 + i / 2
    table.at(2, i, 1, Stage::unpermute, Measure::end_s) += 4;   // of all stages 7 + 2
  }
  const PointSummary summary = stages_summary(table);
  EXPECT_EQ(summary.ffn_p50_s_of_rank, (std::vector<double>{1, 2, 1}));
  EXPECT_EQ(summary.all_stages_p50_s_of_rank, (std::vector<double>{7, 8, 9}));
}

// Two ranks take turns at being late: each one's mean is 1.5, yet every iteration takes 2.
TEST(Summary, MaximumInsideTheIterationIsNotTheMaximumOfMeans) {
  TimingTable table = even_times(2, 10, 1.0);
  for (int i = 0; i < 10; ++i) {
    table.at(i % 2, i, 0, Stage::dispatch, Measure::end_s) += 1.0;
  }
  const StageSummary dispatch =
      stages_summary(table).stages[static_cast<std::size_t>(Stage::dispatch)];
  EXPECT_DOUBLE_EQ(*dispatch.slowest_s.p50, 2.0);
  EXPECT_DOUBLE_EQ(dispatch.max_of_means_s, 1.5);
  EXPECT_DOUBLE_EQ(dispatch.fastest_rank_p50_s, 1.0);
  EXPECT_DOUBLE_EQ(dispatch.slowest_rank_share, 0.5);
}

TEST(Summary, NamesTheSlowestRankAndHowOften) {
  TimingTable table = even_times(4, 10, 1.0, 2);
  for (int i = 0; i < 10; ++i) {
    for (int l = 0; l < 2; ++l) {
      const int late = i < 7 ? 3 : 1;
      table.at(late, i, l, Stage::expert_ffn, Measure::end_s) += 0.5;
      table.at(late, i, l, Stage::expert_ffn, Measure::cpu_s) = 0.25 + late;
    }
  }
  const StageSummary ffn =
      stages_summary(table).stages[static_cast<std::size_t>(Stage::expert_ffn)];
  EXPECT_EQ(ffn.slowest_rank, 3);
  EXPECT_DOUBLE_EQ(ffn.slowest_rank_share, 0.7);
  EXPECT_DOUBLE_EQ(ffn.slowest_rank_cpu_p50_s, 3.25);
}

// Case C34: the spike of the first sample stays in the data and is visible as such.
TEST(Summary, FirstSampleSpikeLeavesTheMedianAlone) {
  const std::vector<double> samples_us = {214477, 14, 5, 3, 4, 5, 4, 4};
  TimingTable table(1, 8, 1);
  for (int i = 0; i < 8; ++i) {
    table.at(0, i, 0, Stage::unpermute, Measure::end_s) =
        samples_us[static_cast<std::size_t>(i)] * 1e-6;
  }
  const StageSummary layer = stages_summary(table).all_stages;
  EXPECT_DOUBLE_EQ(*layer.slowest_s.p50, 4e-6);
  EXPECT_DOUBLE_EQ(layer.first_sample_s, 214477e-6);
  EXPECT_FALSE(layer.slowest_s.p90.has_value());  // of 8 samples
}

// Four layers of 3 and 5 s, of which the first fills the chain; rank 1 is slower in the last two.
TEST(ChainSummary, CountsLayersBehindTheFill) {
  ChainTable table(2, 1, 4);
  const auto set = [&table](int rank, std::vector<double> ends) {
    for (int k = 0; k < 4; ++k) {
      table.begin_s(rank, 0, k) = k == 0 ? 0 : ends[static_cast<std::size_t>(k - 1)];
      table.end_s(rank, 0, k) = ends[static_cast<std::size_t>(k)];
    }
  };
  set(0, {100, 103, 106, 109});
  set(1, {101, 104, 109, 116});
  const ChainSummary chain = summarize_chain(table);
  EXPECT_EQ(chain.fill_layers, 1);
  EXPECT_DOUBLE_EQ(*chain.layer.slowest_s.p50, 15.0 / 3);
  EXPECT_DOUBLE_EQ(chain.layer.fastest_rank_p50_s, 3);
  EXPECT_EQ(chain.layer.slowest_rank, 1);
  EXPECT_EQ(chain.layer_p50_s_of_rank, (std::vector<double>{3, 5}));
  // One layer of 3 s, then two of 6 s on the slowest rank.
  EXPECT_DOUBLE_EQ(*chain.convergence, 2);
}

TEST(ChainShape, LayersAreRepeatedUntilThereAreFour) {
  EXPECT_EQ(chain_layers_for(1), 4);
  EXPECT_EQ(chain_layers_for(3), 6);
  EXPECT_EQ(chain_layers_for(4), 4);
  EXPECT_EQ(chain_layers_for(58), 58);
  EXPECT_EQ(fill_layers_of(4), 1);
  EXPECT_EQ(fill_layers_of(58), 14);
}

}  // namespace
}  // namespace epsweep
