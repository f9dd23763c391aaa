#include "report/slow_rank.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

using Times = std::vector<double>;
using Rows = std::vector<std::int64_t>;

TEST(SlowRank, IsOneThatHasNoMoreRows) {
  const auto slow = slow_ranks(Times{10, 14, 10, 10}, Rows{100, 98, 100, 110});
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].row, 1);
  EXPECT_EQ(slow_rank_text(slow[0], 5),
            "rank 5: expert_ffn takes 1.40 times the median rank's with 0.98 times its rows: its "
            "host or device is slow, not the routing");
}

TEST(SlowRank, RoutingAndSmallDifferencesAreNoReason) {
  EXPECT_TRUE(slow_ranks(Times{10, 14, 10, 10}, Rows{100, 140, 100, 100}).empty());
  EXPECT_TRUE(slow_ranks(Times{10, 12, 10, 10}, Rows{100, 100, 100, 100}).empty());
  EXPECT_TRUE(slow_ranks(Times{10, 20}, Rows{100, 100}).empty());
  EXPECT_TRUE(slow_ranks(Times{0, 20, 0}, Rows{0, 0, 0}).empty());
}

}  // namespace
}  // namespace epsweep
