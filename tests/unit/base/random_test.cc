#include "base/random.h"

#include <set>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

// Any change here changes every routing and weight there ever was.
TEST(Random, ValuesNeverChange) {
  const RandomStream stream(1, Stream::test, 2, 3, 4);
  const RandomStream again(1, Stream::test, 2, 3, 4);
  EXPECT_EQ(stream.bits(5), again.bits(5));
  // SplitMix64's published finaliser: mix64(gamma) is the first output for seed 0.
  EXPECT_EQ(mix64(0x9e3779b97f4a7c15ULL), 0xe220a8397b1dcdafULL);
}

TEST(Random, EveryCoordinateMakesAnotherStream) {
  std::set<std::uint64_t> first;
  for (std::uint64_t v = 0; v < 10; ++v) {
    first.insert(RandomStream(v, Stream::test).bits(0));
    first.insert(RandomStream(100, Stream::test, v + 1).bits(0));
    first.insert(RandomStream(100, Stream::test, 0, v + 1).bits(0));
    first.insert(RandomStream(100, Stream::test, 0, 0, v + 1).bits(0));
    first.insert(RandomStream(100, Stream::routing, v).bits(0));
  }
  EXPECT_EQ(first.size(), 50U);
}

TEST(Random, UniformHasTheRightMeanAndRange) {
  const RandomStream stream(7, Stream::test);
  double sum = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double value = stream.uniform(i);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  // Standard error of the mean: 0.0009.
  EXPECT_NEAR(sum / 100'000, 0.5, 0.005);
}

TEST(Random, BelowReachesEveryValueAboutEquallyOften) {
  const RandomStream stream(7, Stream::test);
  int counts[7] = {};
  for (std::uint64_t i = 0; i < 70'000; ++i) ++counts[stream.below(i, 7)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_EQ(stream.below(3, 1), 0U);
}

}  // namespace
}  // namespace epsweep
