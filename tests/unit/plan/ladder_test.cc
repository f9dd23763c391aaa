#include "plan/ladder.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

SweepPoint at_load(std::int64_t tokens) {
  SweepPoint point;
  point.model.name = "m";
  point.ep_size = 4;
  point.transport = "pairwise";
  point.concurrency = {
      .mode = ConcurrencyMode::fixed_global, .tokens = tokens, .tokens_per_rank = {}};
  return point;
}

LadderStop stop_at(std::int64_t tokens, StopKind kind = StopKind::kv_memory) {
  return {.kind = kind, .at_tokens = tokens, .reason = "because"};
}

TEST(Ladder, SeriesDifferInEveryAxisButTheLoad) {
  const SweepPoint point = at_load(16);
  EXPECT_EQ(series_key(point), series_key(at_load(32)));
  SweepPoint other = point;
  other.index = 7;
  other.attempt = 2;
  other.load_from = LoadFrom::bisection;
  EXPECT_EQ(series_key(point), series_key(other));
  const auto differs = [&point](auto change) {
    SweepPoint changed = point;
    change(changed);
    return series_key(point) != series_key(changed);
  };
  EXPECT_TRUE(differs([](SweepPoint& p) { p.ep_size = 8; }));
  EXPECT_TRUE(differs([](SweepPoint& p) { p.concurrency.mode = ConcurrencyMode::fixed_per_rank; }));
  EXPECT_TRUE(differs([](SweepPoint& p) { p.transport = "alltoallv"; }));
  EXPECT_TRUE(differs([](SweepPoint& p) { p.grouped_gemm = "loop"; }));
  EXPECT_TRUE(differs([](SweepPoint& p) { p.repeat = 1; }));
  EXPECT_TRUE(differs([](SweepPoint& p) { p.routing.distribution = "zipf"; }));
}

TEST(Ladder, LoadsListedByRankHaveNoOrder) {
  SweepPoint few = at_load(0), many = at_load(0);
  few.concurrency = {.mode = ConcurrencyMode::listed, .tokens = 0, .tokens_per_rank = {9, 0, 0, 0}};
  many.concurrency.mode = ConcurrencyMode::listed;
  many.concurrency.tokens_per_rank = {3, 3, 3, 3};
  EXPECT_NE(series_key(few), series_key(many));
  LadderStops stops;
  stops.add(few, stop_at(9));
  EXPECT_FALSE(stops.below(many).has_value());
}

TEST(Ladder, AStopEndsHigherLoadsOfItsSeriesOnly) {
  LadderStops stops;
  EXPECT_FALSE(stops.below(at_load(4096)).has_value());
  stops.add(at_load(2048), stop_at(2048));
  EXPECT_FALSE(stops.below(at_load(1024)).has_value());
  EXPECT_FALSE(stops.below(at_load(2048)).has_value());
  ASSERT_TRUE(stops.below(at_load(2049)).has_value());
  EXPECT_EQ(stops.below(at_load(4096))->beyond(),
            "beyond 2048 tokens: kv_memory stopped the series");
  SweepPoint wider = at_load(4096);
  wider.ep_size = 8;
  EXPECT_FALSE(stops.below(wider).has_value());
}

// Lists need not ascend: a stop at a high load says nothing of lower ones, and a later one at a
// lower load counts.
TEST(Ladder, TheLowestStopCounts) {
  LadderStops stops;
  stops.add(at_load(2048), stop_at(2048));
  stops.add(at_load(512), stop_at(512, StopKind::device_memory));
  EXPECT_EQ(stops.below(at_load(1024))->kind, StopKind::device_memory);
  stops.add(at_load(4096), stop_at(4096, StopKind::latency_objective));
  EXPECT_EQ(stops.below(at_load(8192))->at_tokens, 512);
}

TEST(Ladder, OnlySlowerThanTheObjectiveStops) {
  SweepPoint point = at_load(64);
  EXPECT_FALSE(latency_stop(point, 1e9).has_value());
  point.latency_objective_us = 500;
  EXPECT_FALSE(latency_stop(point, 500).has_value());
  const auto stop = latency_stop(point, 812.34);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->kind, StopKind::latency_objective);
  EXPECT_EQ(stop->at_tokens, 64);
  EXPECT_EQ(stop->reason, "layer p50 812.3 us exceeds the objective of 500 us");
}

TEST(Ladder, JsonNamesKindLoadAndReason) {
  EXPECT_TRUE(ladder_stop_json(std::nullopt).is_null());
  const Json json = ladder_stop_json(stop_at(2048));
  EXPECT_EQ(json["kind"], "kv_memory");
  EXPECT_EQ(json["at_tokens"], 2048);
  EXPECT_EQ(json["reason"], "because");
}

}  // namespace
}  // namespace epsweep
