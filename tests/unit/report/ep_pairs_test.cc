#include "report/ep_pairs.h"

#include <gmock/gmock.h>

#include "report/breakdown_json.h"

namespace epsweep {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

Json record(int ep_size, const std::string& mode, int tokens, int tokens_global,
            const std::string& load_from = "ladder", const std::string& routing = "zipf") {
  Breakdown breakdown;
  breakdown.period_us = 100;
  return {{"state", "measured"},
          {"load_from", load_from},
          {"breakdown", breakdown_json(breakdown)},
          {"point",
           {{"ep_size", ep_size},
            {"concurrency", mode},
            {"tokens", tokens},
            {"tokens_global", tokens_global},
            {"attempt", 1},
            {"routing", {{"distribution", routing}}}}}};
}

TEST(EpPairs, AreOfOneLoadAndFindTheirBridges) {
  const std::vector<Json> records = {
      record(2, "fixed_per_rank", 8, 16), record(4, "fixed_per_rank", 8, 32),
      record(4, "fixed_global", 16, 16, "bridge"), record(2, "fixed_global", 32, 32, "bridge")};
  const std::vector<EpPair> pairs = ep_pairs(records);
  ASSERT_THAT(pairs, SizeIs(1));
  EXPECT_EQ(pairs[0].held, "fixed_per_rank 8");
  EXPECT_EQ(pairs[0].a.tokens_global, 16);
  EXPECT_EQ(pairs[0].b.tokens_global, 32);
  EXPECT_TRUE(pairs[0].wide_low.has_value() && pairs[0].narrow_high.has_value());
  EXPECT_FALSE(pairs[0].corners().same_load);
}

TEST(EpPairs, OtherSeriesAndSecondAttemptsAreApart) {
  std::vector<Json> records = {record(2, "fixed_global", 16, 16), record(4, "fixed_global", 16, 16),
                               record(2, "fixed_global", 16, 16, "ladder", "uniform"),
                               record(4, "fixed_global", 16, 16, "ladder", "uniform")};
  EXPECT_THAT(ep_pairs(records), SizeIs(2));
  EXPECT_EQ(ep_pairs(records)[1].held, "fixed_global 16, uniform");
  records.push_back(record(4, "fixed_global", 16, 16));
  EXPECT_THAT(ep_pairs(records)[0].b.breakdowns, SizeIs(2));
  records.back()["point"]["attempt"] = 2;
  EXPECT_THAT(ep_pairs(records)[0].b.breakdowns, SizeIs(1));
}

TEST(EpPairs, WhatWasNotMeasuredSaysWhy) {
  std::vector<Json> records = {record(2, "fixed_global", 16, 16),
                               record(4, "fixed_global", 16, 16)};
  records[0]["state"] = "stopped";
  records[0]["reason"] = "kv_memory: full";
  const std::vector<EpPair> pairs = ep_pairs(records);
  ASSERT_THAT(pairs, SizeIs(1));
  EXPECT_EQ(pairs[0].a.why_not, "stopped: kv_memory: full");
  EXPECT_THAT(pairs[0].a.breakdowns, IsEmpty());
}

TEST(EpPairs, RecordsWithoutAPointMakeNone) {
  EXPECT_THAT(ep_pairs(std::vector<Json>{{{"state", "measured"}}, Json::object()}), IsEmpty());
}

}  // namespace
}  // namespace epsweep
