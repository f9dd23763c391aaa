#include "workload/pair_capacity.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "costs/traffic.h"
#include "sample_points.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

// Trace of two ranks with two experts each. Rank 0's tokens choose {0, 1}, {0, 2}, {2, 3}: 3 rows
// to either rank; rank 1's choose {0, 1}, {1, 3}: 3 rows to rank 0 and 1 to itself.
TEST(PairCapacity, most_rows_by_hand) {
  SweepPoint point = sample_point("uniform", 4, 2, 5, 2);
  point.placement = "contiguous";
  Trace trace = draw_trace(point, 0);
  trace.experts = {0, 1, 0, 2, 2, 3, 0, 1, 1, 3};
  const Placement placement = place_experts(point, 0, {});
  EXPECT_EQ(most_pair_rows(trace, placement, token_ranges(point)), 3);
  trace.experts = {0, 1, 0, 2, 2, 3, 2, 3, 1, 0};
  EXPECT_EQ(most_pair_rows(trace, placement, token_ranges(point)), 3);
  trace.experts = {0, 1, 0, 1, 0, 1, 2, 3, 1, 0};
  EXPECT_EQ(most_pair_rows(trace, placement, token_ranges(point)), 6);
}

// What plans count and what runs are given is the same.
TEST(PairCapacity, equals_what_the_count_of_a_layer_finds) {
  for (const char* distribution : {"uniform", "zipf"}) {
    SweepPoint point = sample_point(distribution, 16, 3, 77, 5);
    point.placement = "round_robin";
    const Trace trace = draw_trace(point, 0);
    const Placement placement = place_experts(point, 0, {});
    const LayerCounts counts = count_layer(trace, placement, token_ranges(point), 64);
    EXPECT_EQ(most_pair_rows(trace, placement, token_ranges(point)), counts.most_pair_rows);
    EXPECT_EQ(std::ranges::max(counts.send_matrix), counts.most_pair_rows);
  }
}

// 100 tokens, top-3, 4 ranks: 18.75 rows per pair on average.
TEST(PairCapacity, is_what_fits_or_a_declared_multiple_of_the_mean) {
  SweepPoint point = sample_point("uniform", 16, 3, 100, 4);
  EXPECT_EQ(pair_capacity(point, 31), 31);
  EXPECT_EQ(pair_capacity(point, 0), 1);
  point.capacity_factor = 2;
  EXPECT_EQ(pair_capacity(point, 31), 38);
  point.capacity_factor = 1;
  EXPECT_EQ(pair_capacity(point, 31), 19);
}

TEST(PairCapacity, overflow_is_a_reason_with_numbers) {
  SweepPoint point = sample_point("uniform", 16, 3, 100, 4);
  EXPECT_EQ(capacity_refusal(point, 31), std::nullopt);
  point.capacity_factor = 1.5;
  EXPECT_EQ(capacity_refusal(point, 29), std::nullopt);
  EXPECT_EQ(capacity_refusal(point, 30).value_or(""),
            "capacity_factor 1.5 gives every pair of ranks 29 rows (mean 18.75), the fullest pair "
            "has 30: 1.6 or more would do");
  point.capacity_factor.reset();
  EXPECT_THAT(capacity_refusal(point, (std::int64_t{1} << 29) + 1).value_or(""),
              HasSubstr("more than 2^31-1 row positions"));
}

}  // namespace
}  // namespace epsweep
