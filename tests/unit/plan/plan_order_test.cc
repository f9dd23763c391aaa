#include "plan/plan_order.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

// [3 outer][2 loads][2 inner]: series (o, i) is at 4 * o + i, and 2 further on at its second load.
TEST(PlanOrder, LoadsOfASeriesStayTogetherAndInOrder) {
  const RepeatShape shape{.num_outer = 3, .num_loads = 2, .num_inner = 2};
  const auto order = shuffled_series(shape, 7, 0);
  ASSERT_EQ(order.size(), shape.num_points());
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), order.size());
  for (std::size_t k = 0; k < order.size(); k += 2) {
    EXPECT_LT(order[k] % 4, 2U);
    EXPECT_EQ(order[k + 1], order[k] + 2);
  }
}

TEST(PlanOrder, DependsOnSeedAndRepeatOnly) {
  const RepeatShape shape{.num_outer = 20, .num_loads = 1, .num_inner = 1};
  EXPECT_EQ(shuffled_series(shape, 7, 3), shuffled_series(shape, 7, 3));
  EXPECT_NE(shuffled_series(shape, 7, 3), shuffled_series(shape, 7, 4));
  EXPECT_NE(shuffled_series(shape, 8, 3), shuffled_series(shape, 7, 3));
  EXPECT_FALSE(std::ranges::is_sorted(shuffled_series(shape, 7, 3)));
}

// Over many repeats every series comes first about equally often: 6 of them, 600 repeats.
TEST(PlanOrder, NoSeriesIsFavoured) {
  const RepeatShape shape{.num_outer = 6, .num_loads = 1, .num_inner = 1};
  std::vector<int> first(6, 0);
  for (int repeat = 0; repeat < 600; ++repeat) ++first[shuffled_series(shape, 1, repeat).front()];
  for (const int count : first) EXPECT_NEAR(count, 100, 45);  // 5 standard deviations
}

}  // namespace
}  // namespace epsweep
