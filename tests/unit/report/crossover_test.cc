#include "report/crossover.h"

#include <gmock/gmock.h>

namespace epsweep {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(Crossover, LiesBetweenTheLoadsThatShowIt) {
  const auto found = crossings({{64, Shown::slower, 1.25},
                                {128, Shown::nothing, 1.02},
                                {256, Shown::nothing, 0.99},
                                {512, Shown::faster, 0.8}});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].kind, CrossingKind::starts_to_win);
  EXPECT_EQ(found[0].after, 64);
  EXPECT_EQ(found[0].by, 512);
  // ln 1.02 / (ln 1.02 - ln 0.99) = 0.6633 of the octave from 128 on.
  EXPECT_NEAR(*found[0].estimate, 128 * 1.5837, 0.1);
}

TEST(Crossover, MayComeAndGo) {
  const auto found = crossings({{1024, Shown::slower, 1.1},
                                {64, Shown::slower, 1.25},
                                {256, Shown::faster, 0.8}});  // in any order
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].kind, CrossingKind::starts_to_win);
  EXPECT_EQ(found[0].after, 64);
  EXPECT_NEAR(*found[0].estimate, 128, 0.01);  // 1.25 and 1 / 1.25: the middle of two octaves
  EXPECT_EQ(found[1].kind, CrossingKind::stops_winning);
  EXPECT_EQ(found[1].after, 256);
  EXPECT_EQ(found[1].by, 1024);
}

TEST(Crossover, NeedsShownDifferencesOnBothSides) {
  EXPECT_THAT(crossings({}), IsEmpty());
  EXPECT_THAT(crossings({{64, Shown::faster, 0.5}, {128, Shown::faster, 0.9}}), IsEmpty());
  EXPECT_THAT(crossings({{64, Shown::too_few, 1.5}, {128, Shown::faster, 0.5}}), IsEmpty());
  EXPECT_THAT(crossings({{64, Shown::slower, 1.5}, {128, Shown::nothing, 0.9}}), IsEmpty());
}

TEST(Crossover, IsNotGuessedWhereMediansCrossTwice) {
  const auto found = crossings({{64, Shown::slower, 1.25},
                                {128, Shown::nothing, 0.99},
                                {256, Shown::nothing, 1.01},
                                {512, Shown::faster, 0.8}});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_FALSE(found[0].estimate.has_value());
}

}  // namespace
}  // namespace epsweep
