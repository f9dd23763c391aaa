#include "costs/placement_score.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../workload/sample_points.h"
#include "costs/point_workload.h"
#include "workload/placement_traces.h"

namespace epsweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(RankImbalance, of_layers) {
  const RankImbalance two = rank_imbalance({{1, 1}, {4, 0}, {0, 0}});
  EXPECT_THAT(two.max_over_mean, ElementsAre(1.0, 2.0, std::nullopt));
  EXPECT_DOUBLE_EQ(two.mean_over_layers.value(), 1.5);
  EXPECT_DOUBLE_EQ(two.worst.value(), 2.0);
  EXPECT_EQ(two.worst_layer, 1);
  EXPECT_DOUBLE_EQ(two.sum_of_max.value(), 5.0 / 3.0);
  const RankImbalance none = rank_imbalance({{0, 0}});
  EXPECT_EQ(none.mean_over_layers, std::nullopt);
  EXPECT_EQ(none.worst, std::nullopt);
  EXPECT_EQ(none.sum_of_max, std::nullopt);
}

TEST(RebalanceNeeded, is_more_than_chance) {
  EXPECT_FALSE(is_rebalance_needed(1.05, std::nullopt));
  EXPECT_TRUE(is_rebalance_needed(1.06, std::nullopt));
  EXPECT_FALSE(is_rebalance_needed(1.24, 1.2));
  EXPECT_TRUE(is_rebalance_needed(1.26, 1.2));
  EXPECT_FALSE(is_rebalance_needed(std::nullopt, std::nullopt));
}

SweepPoint eplb_point(int redundant_slots) {
  SweepPoint point = sample_point("uniform", 8, 2, 80, 4);
  point.model.expert_io_dim = 16;
  point.model.ffn_dim = 4;
  point.placement = "eplb";
  point.redundant_slots = redundant_slots;
  return point;
}

PlacementScore score_of(const SweepPoint& point, const std::vector<std::int64_t>& rows) {
  const Placement placement = place_experts(point, 0, rows);
  PlacementScoreSum sum(point);
  std::vector<std::int64_t> per_rank(4, 0);
  if (point.redundant_slots == 0) per_rank = rows_per_rank(placement, rows);
  sum.add_layer(placement, {rows, per_rank}, LayerRows{rows, per_rank});
  return sum.finish(SeenBefore::no);
}

// C39. Contiguous 100, 20, 30, 10; packed greedily {0,7} {1,5} {4,6} {2,3}: only 0 and 4 stay.
TEST(PlacementScore, rearranging_alone) {
  const PlacementScore score = score_of(eplb_point(0), {80, 20, 10, 10, 20, 10, 5, 5});
  EXPECT_DOUBLE_EQ(score.before.mean_over_layers.value(), 2.5);
  EXPECT_DOUBLE_EQ(score.judged.mean_over_layers.value(), 2.125);
  EXPECT_DOUBLE_EQ(score.fitted.value().mean_over_layers.value(), 2.125);
  EXPECT_DOUBLE_EQ(score.min_skew_wall.value(), 2.0);
  EXPECT_EQ(score.total_moved_slots, 6);
  EXPECT_EQ(score.total_colocated_replicas, 0);
  EXPECT_EQ(score.extra_weight_bytes_per_rank, 0);
  EXPECT_TRUE(score.rebalance_needed);
  EXPECT_THAT(score.warnings, IsEmpty());
}

// C39: four redundant slots are one more on each rank: 3 matrices of 16 x 4 in bf16.
TEST(PlacementScore, replicas_cost_weights) {
  const PlacementScore score = score_of(eplb_point(4), {80, 20, 10, 10, 20, 10, 5, 5});
  EXPECT_EQ(score.extra_weight_bytes_per_rank, 3 * 16 * 4 * 2);
}

// C43
TEST(PlacementScore, nothing_to_do_and_nothing_known) {
  for (const std::int64_t rows : {7, 0}) {
    const PlacementScore score = score_of(eplb_point(0), std::vector<std::int64_t>(8, rows));
    EXPECT_FALSE(score.rebalance_needed);
    EXPECT_EQ(score.total_moved_slots, 0);
    EXPECT_EQ(score.before.mean_over_layers.has_value(), rows > 0);
    EXPECT_EQ(score.min_skew_wall.has_value(), rows > 0);
  }
  const PlacementScore unused = score_of(eplb_point(4), {9, 0, 9, 9, 9, 9, 9, 9});
  EXPECT_DOUBLE_EQ(unused.min_skew_wall.value(), 7.0);  // of those without a replica
}

TEST(PlacementScore, counts_second_replicas_on_a_rank) {
  SweepPoint point = eplb_point(4);
  const std::vector<int> slots = {0, 0, 1, 2, 3, 2, 4, 5, 6, 6, 7, 6};
  const Placement placement = make_placement(
      "map", {.num_experts = 8, .ep_size = 4, .redundant_slots = 4, .listed_slots = slots});
  PlacementScoreSum sum(point);
  sum.add_layer(placement, {std::vector<std::int64_t>(8, 1), {1, 1, 1, 1}}, std::nullopt);
  const PlacementScore score = sum.finish(SeenBefore::no);
  // Second ones: 0 on rank 0, 2 on rank 1, 6 on rank 3.
  EXPECT_EQ(score.total_colocated_replicas, 3);
  // Contiguous has 0 1 | 2 3 | 4 5 | 6 7: only the 6 on rank 2 is away.
  EXPECT_EQ(score.total_moved_slots, 1);
}

PointWorkload planned(const SweepPoint& point) {
  TraceCache traces;
  PointWorkloadSum sum(point);
  for (int layer = 0; layer < point.layers; ++layer) {
    const Placement placement = place_experts(point, layer, rows_to_fit(point, layer, traces));
    sum.add_layer(traces.of(point, layer), placement);
    sum.score_layer(placement, traces);
  }
  return sum.finish();
}

SweepPoint lognormal_point(std::int64_t tokens = 400) {
  SweepPoint point = sample_point("lognormal_blocks", 64, 4, tokens, 8);
  point.layers = 2;
  point.placement = "eplb";
  return point;
}

TEST(ScoreLayers, own_trace_is_in_sample_and_said_so) {
  const PointWorkload work = planned(lognormal_point());
  const PlacementScore& score = work.placement_score.value();
  EXPECT_EQ(score.judged.max_over_mean, score.fitted.value().max_over_mean);
  ASSERT_THAT(score.warnings, SizeIs(1));
  EXPECT_THAT(score.warnings[0], HasSubstr("in-sample"));
  EXPECT_EQ(score.judged_on, "own trace");
}

// What a rank gets is the judged number, and it is worse than the fitted one.
TEST(ScoreLayers, another_step_is_unseen) {
  SweepPoint point = lognormal_point();
  point.fit_on = TraceChoice{.routing = {}, .step = 1, .seed = {}, .tokens = {}};
  const PointWorkload work = planned(point);
  const PlacementScore& score = work.placement_score.value();
  EXPECT_THAT(score.warnings, IsEmpty());
  EXPECT_EQ(score.judged.max_over_mean, rank_imbalance(work.rows_per_rank).max_over_mean);
  EXPECT_GT(score.judged.mean_over_layers.value(), score.fitted.value().mean_over_layers.value());

  SweepPoint step_one = lognormal_point();
  step_one.step = 1;
  EXPECT_EQ(score.fitted.value().max_over_mean,
            planned(step_one).placement_score.value().judged.max_over_mean);
}

// A longer trace of the same step begins with the tokens it is judged on.
TEST(ScoreLayers, more_tokens_of_the_same_step_have_been_seen) {
  SweepPoint point = lognormal_point();
  point.fit_on = TraceChoice{.routing = {}, .step = {}, .seed = {}, .tokens = 1000};
  EXPECT_THAT(planned(point).placement_score.value().warnings, SizeIs(1));
  // Another step of a recording has other tokens.
  SweepPoint recorded = sample_point("recorded_trace", 64, 8, 16, 8);
  recorded.placement = "eplb";
  recorded.fit_on = TraceChoice{.routing = {}, .step = 3, .seed = {}, .tokens = {}};
  EXPECT_THAT(planned(recorded).placement_score.value().warnings,
              ElementsAre(HasSubstr("the same recording")));
}

TEST(ScoreLayers, one_recording_for_both_is_warned_of) {
  SweepPoint point = sample_point("recorded_counts", 64, 8, 256, 8);
  point.routing.file_checksum = "0123456789abcdef";
  point.placement = "eplb";
  point.fit_on = TraceChoice{.routing = {}, .step = 1, .seed = {}, .tokens = {}};
  const auto warnings = planned(point).placement_score.value().warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("olmoe_like_counts.json"));
}

TEST(ScoreLayers, judge_on_moves_the_score_and_nothing_else) {
  SweepPoint point = lognormal_point();
  const PointWorkload own = planned(point);
  point.judge_on = TraceChoice{.routing = {}, .step = 3, .seed = {}, .tokens = {}};
  const PointWorkload judged = planned(point);
  EXPECT_EQ(judged.rows_per_rank, own.rows_per_rank);
  EXPECT_EQ(judged.routing_checksum, own.routing_checksum);
  const PlacementScore& score = judged.placement_score.value();
  EXPECT_EQ(score.fitted.value().max_over_mean, own.placement_score.value().judged.max_over_mean);
  EXPECT_NE(score.judged.max_over_mean, score.fitted.value().max_over_mean);
  EXPECT_NE(score.before.max_over_mean, own.placement_score.value().before.max_over_mean);
  EXPECT_EQ(score.judged_on, "step 3 of the same routing, 400 tokens");
  EXPECT_THAT(score.warnings, IsEmpty());
}

TEST(ScoreLayers, redundancy_leaves_routing_and_rows_per_expert_alone) {
  SweepPoint point = lognormal_point();
  point.fit_on = TraceChoice{.routing = {}, .step = 1, .seed = {}, .tokens = 4000};
  const PointWorkload plain = planned(point);
  point.redundant_slots = 64;
  const PointWorkload replicated = planned(point);
  EXPECT_EQ(replicated.routing_checksum, plain.routing_checksum);
  EXPECT_EQ(replicated.rows_per_expert, plain.rows_per_expert);
  EXPECT_LT(replicated.placement_score.value().judged.mean_over_layers,
            plain.placement_score.value().judged.mean_over_layers);
}

TEST(ScoreLayers, no_tokens_no_numbers) {
  const PlacementScore score = planned(lognormal_point(0)).placement_score.value();
  EXPECT_EQ(score.before.worst, std::nullopt);
  EXPECT_EQ(score.uniform_floor, std::nullopt);
  EXPECT_FALSE(score.rebalance_needed);
  EXPECT_THAT(score.warnings, IsEmpty());
}

}  // namespace
}  // namespace epsweep
