// C15: every routing keeps 8 distinct experts per token, and every row reaches one place.
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "sample_points.h"
#include "workload/dispatch_plan.h"
#include "workload/trace.h"

namespace epsweep {
namespace {

constexpr int kExperts = 64, kTopK = 8, kRanks = 6;
constexpr std::int64_t kTokens = 1000;

// 1,000 tokens with neighbouring experts, as a recorder might have written them.
std::string written_trace() {
  std::string text;
  for (int token = 0; token < kTokens; ++token) {
    std::vector<int> experts(kTopK);
    for (int j = 0; j < kTopK; ++j) {
      experts[static_cast<std::size_t>(j)] = (token * 13 + j * (token % 7 + 1)) % kExperts;
    }
    text += fmt::format("{{\"layer\": 0, \"topk_ids\": [{}]}}\n", fmt::join(experts, ","));
  }
  return write_file("case_c15.jsonl", text);
}

// Every distribution by its parameters, and those that can be asked for an imbalance by that too.
std::vector<SweepPoint> points() {
  std::vector<SweepPoint> points;
  for (const std::string& name : DistributionCatalog::instance().names()) {
    points.push_back(sample_point(name, kExperts, kTopK, kTokens, kRanks));
    if (name == "recorded_trace") points.back().routing.file = written_trace();
    if (DistributionCatalog::instance().at(name).skew.param.empty()) continue;
    points.push_back(points.back());
    if (name == "group_limited") set_param(points.back().routing, "sigma_expert", 0.6);
    ask_for(points.back().routing, 2.5);
  }
  return points;
}

TEST(CaseC15, EightDistinctExpertsAndEightThousandRows) {
  for (const SweepPoint& point : points()) {
    const Trace trace = draw_trace(point, 0);
    for (std::int64_t token = 0; token < kTokens; ++token) {
      const auto experts = trace.of_token(token);
      const std::set<std::int32_t> distinct(experts.begin(), experts.end());
      ASSERT_EQ(distinct.size(), 8U) << point.routing.label() << " token " << token;
      ASSERT_TRUE(*distinct.begin() >= 0 && *distinct.rbegin() < kExperts);
    }
    const std::vector<std::int64_t> rows = rows_per_expert(trace);
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), 8000)
        << point.routing.label();
  }
}

TEST(CaseC15, WhatIsSentIsReceivedAndEveryTokenHasOneHome) {
  for (const SweepPoint& point : points()) {
    const Trace trace = draw_trace(point, 0);
    const Placement placement = make_placement("contiguous", {kExperts, kRanks});
    std::int64_t next_token = 0, received = 0;
    std::vector<DispatchPlan> plans;
    for (int rank = 0; rank < kRanks; ++rank) {
      plans.push_back(plan_dispatch(trace, placement, token_ranges(point), rank));
      EXPECT_EQ(plans.back().tokens.begin, next_token);
      next_token = plans.back().tokens.end;
    }
    EXPECT_EQ(next_token, kTokens);
    for (std::size_t to = 0; to < plans.size(); ++to) {
      std::int64_t sent = 0;
      for (const DispatchPlan& from : plans) sent += from.send_rows[to];
      EXPECT_EQ(sent, plans[to].num_recv_rows()) << point.routing.label();
      received += sent;
    }
    EXPECT_EQ(received, 8000);
  }
}

}  // namespace
}  // namespace epsweep
