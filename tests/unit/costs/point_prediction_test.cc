#include "costs/point_prediction.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

// Rows of 4 bf16 values: 8 bytes. An expert has 3 * 4 * 2 = 24 parameters.
SweepPoint sample_point(ExchangeUnit unit = ExchangeUnit::assignment) {
  SweepPoint point;
  point.model.hidden_dim = point.model.expert_io_dim = 4;
  point.model.ffn_dim = 2;
  point.ep_size = 2;
  point.layers = 2;
  point.exchange_unit = unit;
  return point;
}

// Two layers of two ranks. Of the first rank 0 is slower (600 B of weights), of the second rank 1
// (900 operations).
PointWorkload sample_workload() {
  PointWorkload work;
  work.traffic.row_bytes = 8;
  work.traffic.b_copies = 40;
  work.traffic.d_copies = 20;
  work.busiest_a_rows = {10, 20};
  work.busiest_d_copies = {6, 14};
  work.ffn_of_routing = {{{.flops = 100, .weight_bytes = 500, .weight_scale_bytes = 100},
                         {.flops = 300, .weight_bytes = 100}},
                        {{.flops = 100, .weight_bytes = 100}, {.flops = 900, .weight_bytes = 50}}};
  return work;
}

GroupLayout sample_layout() {
  return {.ep_size = 2,
          .num_groups = 1,
          .idle_ranks = {0},
          .group_of_rank = {-1, 0, 0},
          .ep_rank_of_rank = {-1, 0, 1}};
}

// Rank 0 of the group streams 100 B/s and computes 1000/s, rank 1 half of that of both.
PointCeilings sample_ceilings() {
  return {.ranks = {{.flop_per_s = 1000, .read_bytes_per_s = 100},
                    {.flop_per_s = 500, .read_bytes_per_s = 50}},
          .exchange = ExchangeLine{.alpha_s = 2, .beta_bytes_per_s = 10}};
}

TEST(PointPrediction, TheSlowestRankOfEveryLayerDecides) {
  const auto ffn =
      predict_point(sample_point(), sample_workload(), sample_layout(), sample_ceilings()).ffn;
  ASSERT_TRUE(ffn);
  // Layer 0: rank 0 max(6, 0.1), rank 1 max(2, 0.6). Layer 1: max(1, 0.1), max(1, 1.8).
  EXPECT_DOUBLE_EQ(ffn->seconds, (6 + 1.8) / 2);
  EXPECT_DOUBLE_EQ(ffn->weight_s, (6.0 + 1) / 2);
  EXPECT_DOUBLE_EQ(ffn->compute_s, (0.1 + 1.8) / 2);
  EXPECT_EQ(ffn->bound(), RooflineBound::memory);
  EXPECT_EQ(ffn->world_rank, 1);
}

// (10 + 20) rows of 8 bytes in two layers: 120 bytes each.
TEST(PointPrediction, AssignmentsAreCountedByLetterA) {
  const auto prediction =
      predict_point(sample_point(), sample_workload(), sample_layout(), sample_ceilings());
  ASSERT_TRUE(prediction.dispatch && prediction.combine);
  EXPECT_EQ(prediction.dispatch->letter, "A");
  EXPECT_DOUBLE_EQ(prediction.dispatch->bytes, 120);
  EXPECT_DOUBLE_EQ(prediction.dispatch->alpha_s, 2);
  EXPECT_DOUBLE_EQ(prediction.dispatch->bytes_s, 12);
  EXPECT_DOUBLE_EQ(prediction.combine->seconds(), 14);
}

// 6 + 14 copies; in dispatch 320 B of metadata over 40 copies, 8 B more for each.
TEST(PointPrediction, RanksAreCountedByLetterD) {
  PointWorkload work = sample_workload();
  work.metadata_bytes = 320;
  const auto prediction =
      predict_point(sample_point(ExchangeUnit::rank), work, sample_layout(), sample_ceilings());
  EXPECT_EQ(prediction.dispatch->letter, "D");
  EXPECT_DOUBLE_EQ(prediction.dispatch->bytes, 160);
  EXPECT_DOUBLE_EQ(prediction.combine->bytes, 80);
}

TEST(PointPrediction, FixedCapacitiesMoveTheirPadding) {
  PointWorkload work = sample_workload();
  work.capacity_rows = 50;
  const auto prediction = predict_point(sample_point(), work, sample_layout(), sample_ceilings());
  EXPECT_EQ(prediction.dispatch->letter, "padded");
  EXPECT_DOUBLE_EQ(prediction.dispatch->bytes, 50 * 8);
}

TEST(PointPrediction, NothingIsGuessed) {
  PointCeilings ceilings = sample_ceilings();
  ceilings.ranks[1].flop_per_s.reset();
  ceilings.exchange.reset();
  const auto without = predict_point(sample_point(), sample_workload(), sample_layout(), ceilings);
  EXPECT_FALSE(without.ffn || without.dispatch || without.combine);
  PointWorkload at_home = sample_workload();
  at_home.traffic.d_copies = 0;
  at_home.busiest_a_rows = at_home.busiest_d_copies = {0, 0};
  EXPECT_FALSE(predict_point(sample_point(), at_home, sample_layout(), sample_ceilings()).dispatch);
}

// Four ranks with a token each, all for rank 0's expert: it receives three rows, nobody sends more
// than one. The others' experts have nothing to do.
TEST(PointWorkload, KnowsTheBusiestRankOfEveryLayer) {
  SweepPoint point = sample_point();
  point.ep_size = point.model.num_experts = 4;
  point.model.top_k = point.layers = 1;
  point.routing.distribution = "uniform";
  point.placement = "contiguous";
  point.concurrency = {ConcurrencyMode::fixed_global, 4, {}};
  const Trace trace{.num_tokens = 4, .top_k = 1, .num_experts = 4, .experts = {0, 0, 0, 0}};
  PointWorkloadSum sum(point);
  sum.add_layer(trace, make_placement("contiguous", {.num_experts = 4, .ep_size = 4}));
  const PointWorkload work = sum.finish();
  EXPECT_EQ(work.busiest_a_rows, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(work.busiest_d_copies, (std::vector<std::int64_t>{3}));
  ASSERT_EQ(work.ffn_of_routing.size(), 1U);
  EXPECT_EQ(work.ffn_of_routing[0][0].routed_rows, 4);
  EXPECT_EQ(work.ffn_of_routing[0][1].weight_bytes, 0);
}

}  // namespace
}  // namespace epsweep
