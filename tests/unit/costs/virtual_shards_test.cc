#include "costs/virtual_shards.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace epsweep {
namespace {

using Ranks = std::vector<int>;

ShardLoads loads_of(const std::vector<std::int64_t>& rows) {
  ShardLoads loads(1);
  for (const std::int64_t count : rows) loads[0].push_back({.rows = count, .slots = 1});
  return loads;
}

TEST(ShardsToMeasure, AreTheHeaviestTheLightestAndThoseBetween) {
  const ShardLoads loads = loads_of({3, 9, 5, 1, 7});
  EXPECT_EQ(shards_to_measure(loads, 1), Ranks({1}));
  EXPECT_EQ(shards_to_measure(loads, 2), Ranks({1, 3}));
  EXPECT_EQ(shards_to_measure(loads, 3), Ranks({1, 2, 3}));
  EXPECT_EQ(shards_to_measure(loads, 5), Ranks({1, 4, 2, 0, 3}));
  EXPECT_EQ(shards_to_measure(loads, 99), Ranks({1, 4, 2, 0, 3}));
}

// Rank 0 has 6 and 6 rows, rank 1 has 1 and 8: one layer is enough to be the slowest there.
TEST(ShardsToMeasure, LookAtTheHeaviestLayerOfARank) {
  const ShardLoads loads = {{{6, 1}, {1, 1}, {2, 1}}, {{6, 1}, {8, 1}, {3, 1}}};
  EXPECT_EQ(shards_to_measure(loads, 1), Ranks({1}));
  EXPECT_EQ(shards_to_measure(loads, 2), Ranks({1, 2}));
}

// Rank 5 touches four experts with few rows: of four ranks one is for it.
TEST(ShardsToMeasure, IncludeTheRankThatStreamsMostWeights) {
  const ShardLoads loads = {{{60, 2}, {50, 2}, {40, 2}, {30, 2}, {20, 2}, {15, 4}, {10, 2}}};
  EXPECT_EQ(shards_to_measure(loads, 3), Ranks({0, 3, 6}));
  EXPECT_EQ(shards_to_measure(loads, 4), Ranks({0, 3, 5, 6}));
}

TEST(SpanOf, IsTheIntervalOfTheMedian) {
  // Of 6 samples the first and the last; of fewer all there is.
  const StageSpan six = span_of({6, 1, 5, 2, 4, 3});
  EXPECT_EQ(six.seconds, 3);
  EXPECT_EQ(six.low_s, 1);
  EXPECT_EQ(six.high_s, 6);
  const StageSpan nine = span_of({9, 8, 7, 6, 5, 4, 3, 2, 1});  // j = 2
  EXPECT_EQ(nine.low_s, 2);
  EXPECT_EQ(nine.high_s, 8);
  EXPECT_EQ(span_of({7}).high_s, 7);
  EXPECT_THROW(span_of({}), RunError);
}

MeasuredShard shard(int ep_rank, const std::vector<StageSpan>& ffn_of_routing,
                    const StageSpan& router = {}) {
  MeasuredShard made{.ep_rank = ep_rank, .of_routing = {}};
  for (const StageSpan& ffn : ffn_of_routing) {
    auto& stages = made.of_routing.emplace_back();
    stages[static_cast<std::size_t>(Stage::expert_ffn)] = ffn;
    stages[static_cast<std::size_t>(Stage::router)] = router;
  }
  return made;
}

void expect_span(const StageSpan& span, double seconds, double low_s, double high_s) {
  EXPECT_DOUBLE_EQ(span.seconds, seconds);
  EXPECT_DOUBLE_EQ(span.low_s, low_s);
  EXPECT_DOUBLE_EQ(span.high_s, high_s);
}

// Rows 40, 25, 20, 10, 0; measured 40 rows (80 s) and 10 rows (20 s, between 18 and 23).
TEST(VirtualShards, OthersLieOnTheLineBetweenMeasuredOnes) {
  const VirtualShards shards(loads_of({40, 25, 20, 10, 0}), {1, 1, 1, 1, 1},
                             {shard(0, {{80, 78, 90}}), shard(3, {{20, 18, 23}})});
  const auto ffn = [&shards](int rank) { return shards.at(0, rank, Stage::expert_ffn); };
  expect_span(ffn(0), 80, 78, 90);
  expect_span(ffn(1), 50, 18, 90);  // half way
  expect_span(ffn(2), 40, 18, 90);  // a third
  expect_span(ffn(3), 20, 18, 23);
  expect_span(ffn(4), 0, 0, 0);
  EXPECT_TRUE(shards.is_measured(0));
  EXPECT_FALSE(shards.is_measured(1));
}

// Two layers: rank 0 was measured at 10 and 20 rows, rank 1 at 10 and 4. Ten rows took 30 and 34.
TEST(VirtualShards, PoolTheLayersOfAllMeasuredRanks) {
  const ShardLoads loads = {{{10, 1}, {10, 1}, {15, 1}}, {{20, 1}, {4, 1}, {2, 1}}};
  const VirtualShards shards(
      loads, {1, 1, 1},
      {shard(0, {{30, 29, 31}, {52, 50, 54}}), shard(1, {{34, 33, 36}, {14, 14, 14}})});
  expect_span(shards.at(0, 2, Stage::expert_ffn), 42, 29, 54);  // (32 + 52) / 2
  expect_span(shards.at(1, 2, Stage::expert_ffn), 14, 14, 14);  // below the fewest: held
  expect_span(shards.at(0, 0, Stage::expert_ffn), 30, 29, 31);  // its own, not the mean
  expect_span(shards.at(0, 1, Stage::expert_ffn), 34, 33, 36);
}

TEST(VirtualShards, OneAloneHoldsForFewerRowsAndGrowsWithMore) {
  const VirtualShards shards(loads_of({10, 5, 20}), {1, 1, 1}, {shard(0, {{30, 28, 32}})});
  expect_span(shards.at(0, 1, Stage::expert_ffn), 30, 28, 32);
  expect_span(shards.at(0, 2, Stage::expert_ffn), 60, 28, 64);
}

// Tokens 9, 0, 8 and 1: rank 2 is closest to rank 0, rank 3 to rank 1.
TEST(VirtualShards, StagesOfOwnTokensAreThoseOfTheClosestRank) {
  const VirtualShards shards(loads_of({4, 3, 2, 1}), {9, 0, 8, 1},
                             {shard(0, {{1, 1, 1}}, {7, 6, 8}), shard(1, {{1, 1, 1}}, {2, 1, 3})});
  expect_span(shards.at(0, 2, Stage::router), 7, 6, 8);
  expect_span(shards.at(0, 3, Stage::router), 2, 1, 3);
  EXPECT_THROW(shards.at(0, 0, Stage::dispatch), RunError);
}

TEST(VirtualShards, StagesOfOwnTokensAreTheMeanOfEquallyClose) {
  const VirtualShards shards(loads_of({4, 3, 2}), {8, 8, 8},
                             {shard(0, {{1, 1, 1}}, {7, 6, 8}), shard(1, {{1, 1, 1}}, {3, 1, 4})});
  expect_span(shards.at(0, 2, Stage::router), 5, 1, 8);
}

}  // namespace
}  // namespace epsweep
