#include "workload/placement_traces.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_points.h"
#include "workload/placement.h"

namespace epsweep {
namespace {

using ::testing::IsEmpty;

SweepPoint eplb_point() {
  SweepPoint point = sample_point("lognormal_blocks", 64, 4, 100, 8);
  point.placement = "eplb";
  return point;
}

TraceChoice at_step(std::int64_t step) {
  return {.routing = {}, .step = step, .seed = {}, .tokens = {}};
}

TEST(FittedOn, says_what_the_placement_has_seen) {
  SweepPoint point = eplb_point();
  EXPECT_EQ(placement_fitted_on(point), "own trace (in-sample)");
  point.fit_on = at_step(0);  // the own one, said again
  EXPECT_EQ(placement_fitted_on(point), "own trace (in-sample)");
  point.fit_on = at_step(1);
  point.fit_on->tokens = 65536;
  EXPECT_EQ(placement_fitted_on(point), "step 1 of the same routing, 65536 tokens");
  point.fit_on->seed = 9;
  point.fit_on->routing = default_routing("uniform");
  EXPECT_EQ(placement_fitted_on(point), "step 1, seed 9 of uniform, 65536 tokens");
  point.fit_on = at_step(0);
  point.fit_on->routing = default_routing("recorded_counts");
  point.fit_on->routing->file_checksum = "0123456789abcdef";
  EXPECT_EQ(placement_fitted_on(point),
            "step 0 of recorded_counts(file=olmoe_like_counts.json 01234567), 100 tokens");
  point.placement = "random";
  EXPECT_EQ(placement_fitted_on(point), std::nullopt);
}

TEST(JudgedOn, is_the_own_trace_unless_another_is_named) {
  SweepPoint point = eplb_point();
  EXPECT_EQ(placement_judged_on(point), "own trace");
  point.judge_on = at_step(2);
  EXPECT_EQ(placement_judged_on(point), "step 2 of the same routing, 100 tokens");
}

TEST(RowsToFit, are_those_of_the_named_trace) {
  TraceCache traces;
  SweepPoint point = eplb_point(), other = eplb_point();
  EXPECT_EQ(rows_to_fit(point, 0, traces), rows_per_expert(draw_trace(point, 0)));
  point.fit_on = at_step(1);
  point.fit_on->tokens = 300;
  other.step = 1;
  other.concurrency.tokens = 300;
  EXPECT_EQ(rows_to_fit(point, 0, traces), rows_per_expert(draw_trace(other, 0)));
  point.placement = "contiguous";
  EXPECT_THAT(rows_to_fit(point, 0, traces), IsEmpty());
}

// Whoever asks first, with whatever is kept: ranks keep nothing, plans keep a lot.
TEST(RowsToFit, do_not_depend_on_what_is_kept) {
  SweepPoint point = eplb_point();
  point.fit_on = at_step(1);
  TraceCache nothing(0), much;
  much.of(fitted_point(point), 0);
  much.of(point, 0);
  EXPECT_EQ(rows_to_fit(point, 0, nothing), rows_to_fit(point, 0, much));
}

std::shared_ptr<const PlacementMap> map_of(const std::string& text, int num_experts) {
  return std::make_shared<const PlacementMap>(
      parse_placement_map(text, "dir/my_map.yaml", num_experts));
}

SweepPoint map_point(const std::string& text, int ep_size) {
  SweepPoint point = sample_point("uniform", 4, 2, 16, ep_size);
  point.placement = "map";
  point.placement_map = map_of(text, 4);
  point.redundant_slots = point.placement_map->num_slots - 4;
  return point;
}

// The file's numbers are the model's; the sweep's first layer is the smallest of them.
TEST(MapPlacement, puts_experts_where_the_file_says) {
  const SweepPoint point = map_point(
      "{num_slots: 6, initial_global_assignments: {12: [3, 2, 1, 0, 3, 3], 3: [0, 1, 2, 0, 2, 3]}}",
      3);
  EXPECT_EQ(slot_refusal(point), std::nullopt);
  EXPECT_EQ(place_experts(point, 0, {}).experts_of_rank,
            (std::vector<std::vector<int>>{{0, 1}, {2, 0}, {2, 3}}));
  EXPECT_EQ(place_experts(point, 1, {}).experts_of_rank,
            (std::vector<std::vector<int>>{{3, 2}, {1, 0}, {3, 3}}));
  EXPECT_EQ(placement_fitted_on(point), "file my_map.yaml");
}

TEST(MapPlacement, refusals_name_the_file) {
  const std::string slots = "initial_global_assignments: {0: [0, 1, 2, 3]}";
  EXPECT_EQ(slot_refusal(map_point("{num_slots: 4, ep_size: 2, " + slots + "}", 4)),
            "my_map.yaml is a placement for ep_size 2, not 4");
  EXPECT_EQ(slot_refusal(map_point("{num_slots: 4, " + slots + "}", 3)),
            "my_map.yaml has 4 slots, not the same number for each of 3 ranks");
  EXPECT_EQ(slot_refusal(map_point("{num_slots: 4, ep_size: 2, " + slots + "}", 2)), std::nullopt);
}

}  // namespace
}  // namespace epsweep
