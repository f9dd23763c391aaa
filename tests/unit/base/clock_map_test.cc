#include "base/clock_map.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rank_clock.h"

namespace epsweep {
namespace {

// Behind by 5 ms at 100 s and losing 50 ppm: 0.5 ms more at 110 s.
constexpr ClockAlignment kBefore{.own_s = 100, .offset_s = 0.005, .bound_s = 2e-6};
constexpr ClockAlignment kAfter{.own_s = 110, .offset_s = 0.0055, .bound_s = 3e-6};

TEST(ClockMap, RecoversOffsetAndDriftBetweenTwoAlignments) {
  const ClockMap map = clock_map(kBefore, kAfter);
  EXPECT_DOUBLE_EQ(map.common_s(100), 100.005);
  EXPECT_DOUBLE_EQ(map.common_s(105), 105.00525);
  EXPECT_DOUBLE_EQ(map.common_s(110), 110.0055);
  EXPECT_NEAR(map.drift_ppm().value(), 50, 1e-9);
  EXPECT_NEAR(map.drift_bound_ppm().value(), 0.5, 1e-12);  // (2 + 3) us / 10 s
}

TEST(ClockMap, BoundIsTheLargerOneAndGrowsOutside) {
  const ClockMap map = clock_map(kBefore, kAfter);
  EXPECT_EQ(map.bound_s, 3e-6);
  EXPECT_EQ(map.bound_at_s(100), 3e-6);
  EXPECT_EQ(map.bound_at_s(107), 3e-6);
  EXPECT_EQ(map.bound_at_s(110), 3e-6);
  // 550 ppm, which the two clocks may differ by beside the 50 ppm seen, over 2 s.
  EXPECT_NEAR(map.bound_at_s(98), 3e-6 + 1.1e-3, 1e-12);
  EXPECT_NEAR(map.bound_at_s(112), 3e-6 + 1.1e-3, 1e-12);
}

// Errors at the ends of +2 and -3 us, as large as their bounds: nowhere in between more than 3 us.
TEST(ClockMap, ErrorsOfBothEndsMix) {
  const ClockMap truth = clock_map(kBefore, kAfter);
  ClockAlignment before = kBefore, after = kAfter;
  before.offset_s += before.bound_s;
  after.offset_s -= after.bound_s;
  const ClockMap map = clock_map(before, after);
  for (const double own_s : {100.0, 102.5, 105.0, 110.0}) {
    EXPECT_LE(std::abs(map.common_s(own_s) - truth.common_s(own_s)), map.bound_s + 1e-13) << own_s;
  }
  EXPECT_NEAR(map.common_s(102) - truth.common_s(102), 1e-6, 1e-12);  // 0.8 * 2 - 0.2 * 3
}

// 20 us of errors over 10 ms look like 2000 ppm: 500 are believed, around the middle.
TEST(ClockMap, DriftThatNoClockHasIsNotBelieved) {
  const ClockMap map = clock_map({.own_s = 100, .offset_s = 0.005, .bound_s = 10e-6},
                                 {.own_s = 100.01, .offset_s = 0.00502, .bound_s = 10e-6});
  EXPECT_NEAR(map.drift_ppm().value(), 500, 1e-9);
  EXPECT_NEAR(map.drift_bound_ppm().value(), 2000, 1e-6);
  EXPECT_NEAR(map.common_s(100.005) - 100.005, 0.00501, 1e-12);
  EXPECT_NEAR(map.common_s(100) - 100, 0.0050075, 1e-12);
  EXPECT_NEAR(map.common_s(100.01) - 100.01, 0.0050125, 1e-12);
  EXPECT_EQ(map.bound_s, 10e-6);
  const ClockMap down = clock_map({.own_s = 0, .offset_s = 0.005, .bound_s = 10e-6},
                                  {.own_s = 0.01, .offset_s = 0.00498, .bound_s = 10e-6});
  EXPECT_NEAR(down.drift_ppm().value(), -500, 1e-9);
  EXPECT_NEAR(down.common_s(0.005) - 0.005, 0.00499, 1e-12);
}

TEST(ClockMap, OneAlignmentKnowsNoDrift) {
  const ClockMap map = clock_map(kBefore);
  EXPECT_DOUBLE_EQ(map.common_s(100), 100.005);
  EXPECT_DOUBLE_EQ(map.common_s(101), 101.005);
  EXPECT_FALSE(map.drift_ppm().has_value());
  EXPECT_FALSE(map.drift_bound_ppm().has_value());
  EXPECT_EQ(map.bound_at_s(100), 2e-6);
  EXPECT_NEAR(map.bound_at_s(101), 2e-6 + 500e-6, 1e-12);
}

TEST(ClockMap, SameClockIsTheIdentityAndExact) {
  const ClockMap map = clock_map({.own_s = 7}, {.own_s = 9});
  EXPECT_EQ(map.common_s(8.25), 8.25);
  EXPECT_EQ(map.bound_s, 0);
  EXPECT_EQ(map.bound_at_s(1000), 0);
  EXPECT_EQ(map.drift_ppm(), 0);
  EXPECT_EQ(ClockMap{}.common_s(8.25), 8.25);
}

TEST(ClockMap, AlignmentsMustBeInOrder) {
  EXPECT_THROW(clock_map(kAfter, kBefore), RunError);
  EXPECT_THROW(clock_map(kBefore, kBefore), RunError);
}

TEST(RankClock, InjectedOneIsShiftedAndDrifts) {
  const RankClock host;
  EXPECT_EQ(host.at(12.5), 12.5);
  const RankClock slow{
      .source = ClockSource::injected, .offset_s = -0.005, .drift_ppm = -50, .origin_s = 1000};
  EXPECT_DOUBLE_EQ(slow.at(1000), 999.995);
  EXPECT_DOUBLE_EQ(slow.at(1010), 1009.9945);
}

}  // namespace
}  // namespace epsweep
