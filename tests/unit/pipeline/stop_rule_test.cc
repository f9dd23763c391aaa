#include "pipeline/stop_rule.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

std::vector<double> alternating(int n, double spread) {
  std::vector<double> samples;
  for (int i = 0; i < n; ++i) samples.push_back(1 + (i % 2 == 0 ? spread : -spread));
  return samples;
}

TEST(StopRule, AFixedCountIsRunAtOnce) {
  const IterationPlan plan{.fewest = 50, .target = {}};
  EXPECT_EQ(next_batch(plan, 0), 50);
  EXPECT_FALSE(stop_reason(plan, alternating(49, 0), 1e9).has_value());
  EXPECT_EQ(stop_reason(plan, alternating(50, 0.5), 0), StopReason::count);
}

TEST(StopRule, BatchesGrowAndEndAtTheMost) {
  const IterationPlan plan{.fewest = 20, .target = IterationTarget{.precision = 0.01, .most = 200}};
  EXPECT_EQ(next_batch(plan, 0), 20);
  EXPECT_EQ(next_batch(plan, 20), 10);
  EXPECT_EQ(next_batch(plan, 100), 25);
  EXPECT_EQ(next_batch(plan, 190), 10);
  EXPECT_EQ(next_batch(plan, 195), 5);
}

// Half of the interval between 0.99 and 1.01 is 1 % of the median, 0.99 by nearest rank.
TEST(StopRule, PrecisionThenTimeThenTheMost) {
  const IterationPlan plan{
      .fewest = 10, .target = IterationTarget{.precision = 0.0102, .most = 40, .limit_s = 5}};
  EXPECT_FALSE(stop_reason(plan, alternating(9, 0), 0).has_value());
  EXPECT_EQ(stop_reason(plan, alternating(10, 0.01), 0), StopReason::precision);
  EXPECT_FALSE(stop_reason(plan, alternating(20, 0.02), 4.9).has_value());
  EXPECT_EQ(stop_reason(plan, alternating(20, 0.02), 5), StopReason::time);
  EXPECT_EQ(stop_reason(plan, alternating(40, 0.02), 0), StopReason::most);
}

TEST(StopRule, UnknownPrecisionIsNotGoodEnough) {
  const IterationPlan plan{.fewest = 1, .target = IterationTarget{.precision = 0.5, .most = 100}};
  EXPECT_FALSE(stop_reason(plan, alternating(5, 0), 0).has_value());
  EXPECT_FALSE(relative_precision(std::vector<double>(10, 0.0)).has_value());
}

}  // namespace
}  // namespace epsweep
