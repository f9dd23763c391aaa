#include "workload/placement.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace epsweep {
namespace {

std::vector<std::size_t> sizes(const Placement& placement) {
  std::vector<std::size_t> result;
  for (const std::vector<int>& experts : placement.experts_of_rank) {
    result.push_back(experts.size());
  }
  return result;
}

class EveryPlacement : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Catalog, EveryPlacement,
                         ::testing::ValuesIn(PlacementCatalog::instance().names()),
                         [](const auto& test) { return test.param; });

TEST_P(EveryPlacement, owns_each_expert_once_and_evenly) {
  for (const int num_experts : {1, 8, 30, 128, 256}) {
    for (const int ep_size : {1, 2, 3, 6, 8, 32, 300}) {
      const Placement placement = make_placement(GetParam(), num_experts, ep_size);
      std::vector<int> owners(static_cast<std::size_t>(num_experts), 0);
      for (std::size_t rank = 0; rank < placement.experts_of_rank.size(); ++rank) {
        const std::vector<int>& experts = placement.experts_of_rank[rank];
        EXPECT_TRUE(std::is_sorted(experts.begin(), experts.end()));
        for (std::size_t local = 0; local < experts.size(); ++local) {
          const auto expert = static_cast<std::size_t>(experts[local]);
          ++owners.at(expert);
          EXPECT_EQ(placement.rank_of_expert.at(expert), static_cast<int>(rank));
          EXPECT_EQ(placement.local_index_of_expert.at(expert), static_cast<int>(local));
        }
      }
      EXPECT_EQ(owners, std::vector<int>(owners.size(), 1));
      const std::vector<std::size_t> shares = sizes(placement);
      ASSERT_EQ(shares.size(), static_cast<std::size_t>(ep_size));
      const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
      EXPECT_LE(*most - *least, 1U);
    }
  }
}

// C08
TEST(Contiguous, larger_blocks_come_first) {
  EXPECT_EQ(sizes(make_placement("contiguous", 30, 8)),
            (std::vector<std::size_t>{4, 4, 4, 4, 4, 4, 3, 3}));
  EXPECT_EQ(sizes(make_placement("contiguous", 128, 6)),
            (std::vector<std::size_t>{22, 22, 21, 21, 21, 21}));
  EXPECT_EQ(make_placement("contiguous", 30, 8).experts_of_rank[6], (std::vector<int>{24, 25, 26}));
}

// C09
TEST(Contiguous, ranks_beyond_the_experts_own_none) {
  const std::vector<std::size_t> shares = sizes(make_placement("contiguous", 8, 32));
  EXPECT_EQ(std::count(shares.begin(), shares.end(), 0U), 24);
  EXPECT_EQ(shares[7], 1U);
  EXPECT_EQ(shares[8], 0U);
}

// C19: placement moves load between ranks and nothing between experts.
TEST(Placement, hot_experts_may_or_may_not_make_a_hot_rank) {
  const std::vector<std::int64_t> rows = {40, 40, 4, 4, 4, 4, 4, 4};
  EXPECT_EQ(rows_per_rank(make_placement("contiguous", 8, 4), rows),
            (std::vector<std::int64_t>{80, 8, 8, 8}));
  EXPECT_EQ(rows_per_rank(make_placement("round_robin", 8, 4), rows),
            (std::vector<std::int64_t>{44, 44, 8, 8}));
  EXPECT_THROW(rows_per_rank(make_placement("round_robin", 8, 4), {1, 2}), RunError);
}

TEST(Placement, unknown_names_are_a_broken_contract) {
  EXPECT_THROW(make_placement("nowhere", 8, 4), RunError);
}

}  // namespace
}  // namespace epsweep
