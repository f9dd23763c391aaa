// A/A tests: pairs of points that are the same, and pairs that are not, under declared noise.
#include "report/verdict.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "sim_case.h"

namespace epsweep {
namespace {

constexpr int kPairs = 200, kIterations = 20;
constexpr SimCosts::Noise kNoise{.relative = 0.02, .run = 0.01, .seed = 1};

DeclaredTimes scaled_launch(double factor) {
  DeclaredTimes launch = testing::even_launch(8, 8);
  for (double& own_s : launch.own_s) own_s *= factor;
  return launch;
}

// Layer p50s of the repeats of a point; points with other numbers have other noise.
std::vector<double> repeats_of(const DeclaredTimes& launch, std::uint64_t point, int num_repeats) {
  std::vector<double> p50s;
  for (int repeat = 0; repeat < num_repeats; ++repeat) {
    SimConditions conditions;
    conditions.noise = kNoise;
    conditions.point_key = point * 1000 + static_cast<std::uint64_t>(repeat);
    const ChainSummary chain = summarize_chain(simulate_chained(launch, conditions, kIterations));
    p50s.push_back(*chain.layer.slowest_s.p50);
  }
  return p50s;
}

struct Counts {
  int faster = 0, slower = 0, too_few = 0;
};
Counts compare_pairs(double factor_of_b, int num_repeats) {
  const DeclaredTimes a = scaled_launch(1), b = scaled_launch(factor_of_b);
  Counts counts;
  for (std::uint64_t pair = 0; pair < kPairs; ++pair) {
    const Shown shown = difference_between(repeats_of(a, 2 * pair, num_repeats),
                                           repeats_of(b, 2 * pair + 1, num_repeats))
                            .shown;
    counts.faster += shown == Shown::faster ? 1 : 0;
    counts.slower += shown == Shown::slower ? 1 : 0;
    counts.too_few += shown == Shown::too_few ? 1 : 0;
  }
  return counts;
}

class Pairs : public ::testing::TestWithParam<int> {};

TEST_P(Pairs, ThatAreTheSameRarelyDiffer) {
  const Counts counts = compare_pairs(1, GetParam());
  EXPECT_LE(counts.faster + counts.slower, kPairs / 20);
}

TEST_P(Pairs, ThatAreFivePercentApartAreToldApart) {
  const Counts counts = compare_pairs(1.05, GetParam());
  EXPECT_GE(counts.slower, kPairs * 9 / 10);
  EXPECT_EQ(counts.faster, 0);
}

INSTANTIATE_TEST_SUITE_P(Repeats, Pairs, ::testing::Values(4, 6, 10));

// Three repeats are too few to say anything, whatever they show.
TEST(FewRepeats, ClaimNothing) {
  const Counts counts = compare_pairs(1.05, 3);
  EXPECT_EQ(counts.faster + counts.slower, 0);
  EXPECT_GT(counts.too_few, kPairs / 2);
}

// Mean and deviation of the logarithms of 20,000 factors: within 4 standard errors.
TEST(RankNoise, IsLogNormalWithMedianOne) {
  constexpr int kDraws = 20'000;
  const RankNoise noise({.relative = 0.02, .run = 0, .seed = 3}, 5, 7, SimPass::aligned);
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double z = std::log(noise.factor(i)) / 0.02;
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / kDraws, 0, 4 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 4 * std::sqrt(2.0 / kDraws));
}

TEST(RankNoise, DiffersByPointRankPassAndSeedAndRunsShareAFactor) {
  const SimCosts::Noise declared{.relative = 0.02, .run = 0, .seed = 3};
  const RankNoise noise(declared, 5, 7, SimPass::aligned);
  EXPECT_EQ(noise.factor(4), RankNoise(declared, 5, 7, SimPass::aligned).factor(4));
  EXPECT_NE(noise.factor(4), noise.factor(5));
  EXPECT_NE(noise.factor(4), RankNoise(declared, 6, 7, SimPass::aligned).factor(4));
  EXPECT_NE(noise.factor(4), RankNoise(declared, 5, 8, SimPass::aligned).factor(4));
  EXPECT_NE(noise.factor(4), RankNoise(declared, 5, 7, SimPass::chained).factor(4));
  const SimCosts::Noise run{.relative = 0, .run = 0.1, .seed = 3};
  const double shared = RankNoise(run, 5, 7, SimPass::aligned).factor(4);
  EXPECT_NE(shared, 1);
  EXPECT_EQ(RankNoise(run, 5, 1, SimPass::chained).factor(0), shared);
  EXPECT_NE(RankNoise(run, 6, 7, SimPass::aligned).factor(4), shared);
  EXPECT_EQ(RankNoise({}, 5, 7, SimPass::aligned).factor(4), 1);
  const SimCosts::Noise both{.relative = 0.02, .run = 0.1, .seed = 3};
  EXPECT_DOUBLE_EQ(RankNoise(both, 5, 7, SimPass::aligned).factor(4), shared * noise.factor(4));
}

TEST(RankNoise, EveryTimeOfAPassHasItsOwn) {
  DeclaredTimes launch = testing::even_launch(2, 2, 2);
  launch.own_s.assign(launch.own_s.size(), 1e-3);
  SimConditions conditions;
  conditions.noise = kNoise;
  const TimingTable table = simulate_aligned(launch, conditions, 3);
  std::set<double> times;
  for (int row = 0; row < 2; ++row) {
    for (int i = 0; i < 3; ++i) {
      for (int l = 0; l < 2; ++l) {
        for (const Stage stage : {Stage::router, Stage::permute, Stage::expert_ffn}) {
          times.insert(table.wall_s(row, i, l, stage));
        }
      }
    }
  }
  EXPECT_EQ(times.size(), 36U);
}

}  // namespace
}  // namespace epsweep
