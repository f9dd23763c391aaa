#include "base/top_k.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

using Ids = std::vector<std::int32_t>;

template <typename T>
class TopK : public testing::Test {
 protected:
  static Ids top(const std::vector<T>& values, std::size_t k) {
    Ids chosen(k);
    top_k_indices(std::span<const T>(values), std::span(chosen));
    return chosen;
  }
  static Ids limited(const std::vector<T>& values, const GroupLimit& limit, std::size_t k) {
    GroupScratch<T> scratch;
    scratch.reserve(limit);
    Ids chosen(k);
    limited_top_k(std::span<const T>(values), limit, scratch, std::span(chosen));
    return chosen;
  }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(TopK, Types);

TYPED_TEST(TopK, OrderTiesAndNaN) {
  const auto top = this->top;
  EXPECT_EQ(top({1, 3, 2}, 2), (Ids{1, 2}));
  EXPECT_EQ(top({2, 2, 2, 2}, 3), (Ids{0, 1, 2}));
  EXPECT_EQ(top({0, 5, 5, 9, 5}, 3), (Ids{3, 1, 2}));
  EXPECT_EQ(top({-1, -2}, 2), (Ids{0, 1}));
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  for (const std::int32_t id : top({nan, 1, nan, 2}, 3)) EXPECT_LT(id, 4);
  EXPECT_TRUE(top({1, 2}, 0).empty());
}

TYPED_TEST(TopK, GroupsByTheLargestOrByTheSumOfTwo) {
  const std::vector<TypeParam> values = {9, 0, 0, 6, 5, 0, 1, 7, 1};
  EXPECT_EQ(this->limited(values, {3, 1, GroupScore::max}, 2), (Ids{0, 1}));
  EXPECT_EQ(this->limited(values, {3, 1, GroupScore::top2_sum}, 2), (Ids{3, 4}));
  EXPECT_EQ(this->limited(values, {3, 2, GroupScore::max}, 2), (Ids{0, 7}));
  EXPECT_EQ(this->limited(values, {3, 3, GroupScore::max}, 3), (Ids{0, 7, 3}));
  EXPECT_EQ(this->limited(values, {9, 2, GroupScore::top2_sum}, 2), (Ids{0, 7}));
}

TYPED_TEST(TopK, TiedGroupsGoToTheLower) {
  const std::vector<TypeParam> values = {0, 1, 3, 0, 1, 2, 2, 1};
  EXPECT_EQ(this->limited(values, {4, 2, GroupScore::top2_sum}, 3), (Ids{2, 5, 4}));
}

TYPED_TEST(TopK, GroupScoreFindsTheTwoLargestAnywhere) {
  for (std::vector<TypeParam> group :
       {std::vector<TypeParam>{1, 2, 3}, {3, 2, 1}, {2, 1, 3}, {3, 1, 2}}) {
    EXPECT_EQ(group_score(std::span<const TypeParam>(group), GroupScore::top2_sum), 5);
    EXPECT_EQ(group_score(std::span<const TypeParam>(group), GroupScore::max), 3);
  }
}

}  // namespace
}  // namespace epsweep
