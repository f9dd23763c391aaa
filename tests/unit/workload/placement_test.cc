#include "workload/placement.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
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

// The fewest redundant slots that the placement takes.
int least_redundancy(const std::string& name, int num_experts, int ep_size) {
  const SlotRule rule = PlacementCatalog::instance().at(name).slot_rule;
  return rule == SlotRule::one_per_expert ? 0 : (ep_size - num_experts % ep_size) % ep_size;
}

TEST_P(EveryPlacement, gives_every_expert_a_slot_and_shares_slots_evenly) {
  for (const int num_experts : {1, 8, 30, 128, 256}) {
    for (const int ep_size : {1, 2, 3, 6, 8, 32, 300}) {
      const int redundant = least_redundancy(GetParam(), num_experts, ep_size);
      std::vector<int> listed(static_cast<std::size_t>(num_experts + redundant));
      for (std::size_t slot = 0; slot < listed.size(); ++slot) {
        listed[slot] = static_cast<int>(slot * 7 % static_cast<std::size_t>(num_experts));
      }
      const Placement placement = make_placement(GetParam(), {.num_experts = num_experts,
                                                              .ep_size = ep_size,
                                                              .redundant_slots = redundant,
                                                              .seed = 7,
                                                              .layer = 1,
                                                              .listed_slots = listed});
      ASSERT_EQ(placement.num_slots(), num_experts + redundant);
      std::vector<int> owners(static_cast<std::size_t>(num_experts), 0);
      int slot = 0;
      for (int rank = 0; rank < ep_size; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        EXPECT_EQ(placement.first_slot_of_rank.at(at), slot);
        for (const int expert : placement.experts_of_rank[at]) {
          ++owners.at(static_cast<std::size_t>(expert));
          EXPECT_EQ(placement.expert_of_slot.at(static_cast<std::size_t>(slot)), expert);
          EXPECT_EQ(placement.rank_of_slot.at(static_cast<std::size_t>(slot++)), rank);
        }
      }
      EXPECT_EQ(slot, placement.num_slots());
      for (int expert = 0; expert < num_experts; ++expert) {
        const auto slots = placement.slots_of_expert(expert);
        EXPECT_EQ(static_cast<int>(slots.size()), owners[static_cast<std::size_t>(expert)]);
        EXPECT_GE(slots.size(), 1U);
        EXPECT_TRUE(std::ranges::is_sorted(slots));
      }
      const std::vector<std::size_t> shares = sizes(placement);
      ASSERT_EQ(shares.size(), static_cast<std::size_t>(ep_size));
      const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
      EXPECT_LE(*most - *least, redundant == 0 ? 1U : 0U);
    }
  }
}

TEST(RoundRobin, deals_experts_like_cards) {
  EXPECT_EQ(make_placement("round_robin", {7, 3}).experts_of_rank,
            (std::vector<std::vector<int>>{{0, 3, 6}, {1, 4}, {2, 5}}));
}

TEST(Random, follows_seed_and_layer_only) {
  const auto experts = [](const PlacementContext& context) {
    return make_placement("random", context).expert_of_slot;
  };
  const std::vector<int> one = experts({64, 8, 0, 1, 0});
  EXPECT_EQ(experts({64, 4, 0, 1, 0}), one);
  EXPECT_NE(experts({64, 8, 0, 2, 0}), one);
  EXPECT_NE(experts({64, 8, 0, 1, 1}), one);
}

// C08
TEST(Contiguous, larger_blocks_come_first) {
  EXPECT_EQ(sizes(make_placement("contiguous", {30, 8})),
            (std::vector<std::size_t>{4, 4, 4, 4, 4, 4, 3, 3}));
  EXPECT_EQ(sizes(make_placement("contiguous", {128, 6})),
            (std::vector<std::size_t>{22, 22, 21, 21, 21, 21}));
  EXPECT_EQ(make_placement("contiguous", {30, 8}).experts_of_rank[6],
            (std::vector<int>{24, 25, 26}));
}

// C09
TEST(Contiguous, ranks_beyond_the_experts_own_none) {
  const std::vector<std::size_t> shares = sizes(make_placement("contiguous", {8, 32}));
  EXPECT_EQ(std::count(shares.begin(), shares.end(), 0U), 24);
  EXPECT_EQ(shares[7], 1U);
  EXPECT_EQ(shares[8], 0U);
}

// C19: placement moves load between ranks and nothing between experts.
TEST(Placement, hot_experts_may_or_may_not_make_a_hot_rank) {
  const std::vector<std::int64_t> rows = {40, 40, 4, 4, 4, 4, 4, 4};
  EXPECT_EQ(rows_per_rank(make_placement("contiguous", {8, 4}), rows),
            (std::vector<std::int64_t>{80, 8, 8, 8}));
  EXPECT_EQ(rows_per_rank(make_placement("round_robin", {8, 4}), rows),
            (std::vector<std::int64_t>{44, 44, 8, 8}));
  EXPECT_THROW(rows_per_rank(make_placement("round_robin", {8, 4}), {1, 2}), RunError);
}

// What every rank carries if replicas share their expert's rows evenly.
std::vector<double> fair_loads(const Placement& placement, const std::vector<std::int64_t>& rows) {
  std::vector<double> loads;
  for (const std::vector<int>& experts : placement.experts_of_rank) {
    loads.push_back(0);
    for (const int expert : experts) {
      loads.back() += static_cast<double>(rows[static_cast<std::size_t>(expert)]) /
                      static_cast<double>(placement.slots_of_expert(expert).size());
    }
  }
  return loads;
}

Placement eplb(int ep_size, int redundant_slots, const std::vector<std::int64_t>& rows) {
  return make_placement("eplb", {.num_experts = static_cast<int>(rows.size()),
                                 .ep_size = ep_size,
                                 .redundant_slots = redundant_slots,
                                 .rows_per_expert = rows});
}

// C39: moving experts helps as far as the hottest one allows; replicas help further.
TEST(Eplb, rearranges_and_replicates) {
  const std::vector<std::int64_t> rows = {80, 20, 10, 10, 20, 10, 5, 5};
  EXPECT_EQ(rows_per_rank(make_placement("contiguous", {8, 4}), rows),
            (std::vector<std::int64_t>{100, 20, 30, 10}));
  const Placement moved = eplb(4, 0, rows);
  EXPECT_EQ(std::ranges::max(rows_per_rank(moved, rows)), 85);
  const Placement replicated = eplb(4, 4, rows);
  EXPECT_LE(std::ranges::max(fair_loads(replicated, rows)), 50);
  EXPECT_EQ(sizes(replicated), (std::vector<std::size_t>{3, 3, 3, 3}));
  EXPECT_THROW(rows_per_rank(replicated, rows), RunError);
}

// C43
TEST(Eplb, nothing_to_do_or_nothing_known_moves_nothing) {
  const std::vector<int> unmoved = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(eplb(4, 0, std::vector<std::int64_t>(8, 7)).expert_of_slot, unmoved);
  EXPECT_EQ(eplb(4, 0, std::vector<std::int64_t>(8, 0)).expert_of_slot, unmoved);
  EXPECT_EQ(make_placement("eplb", {8, 4}).expert_of_slot, unmoved);
  // Replicas of what nobody is known to use are spread over all experts.
  for (const Placement& spread :
       {make_placement("eplb", {8, 4, 8}), eplb(4, 8, std::vector<std::int64_t>(8, 0))}) {
    for (int expert = 0; expert < 8; ++expert) EXPECT_EQ(spread.slots_of_expert(expert).size(), 2U);
  }
  const Placement unused = eplb(4, 4, {9, 0, 9, 9, 9, 9, 9, 9});
  EXPECT_EQ(unused.slots_of_expert(1).size(), 1U);
}

SweepPoint slots_point(int num_experts, int ep_size, int redundant_slots) {
  SweepPoint point;
  point.model.num_experts = num_experts;
  point.ep_size = ep_size;
  point.placement = "eplb";
  point.redundant_slots = redundant_slots;
  return point;
}

// C41
TEST(Slots, that_cannot_be_dealt_are_refused_with_what_would_do) {
  using ::testing::EndsWith;
  using ::testing::HasSubstr;
  EXPECT_THAT(slot_refusal(slots_point(128, 6, 0)).value(), EndsWith("the smallest that is: 4"));
  EXPECT_THAT(slot_refusal(slots_point(60, 32, 1)).value(), EndsWith("the smallest that is: 4"));
  EXPECT_THAT(slot_refusal(slots_point(256, 24, 0)).value(), EndsWith("the smallest that is: 8"));
  EXPECT_THAT(slot_refusal(slots_point(60, 32, 5)).value(), EndsWith("4, the next above: 36"));
  EXPECT_THAT(slot_refusal(slots_point(128, 8, 1)).value(), EndsWith("0, the next above: 8"));
  EXPECT_EQ(slot_refusal(slots_point(60, 32, 4)), std::nullopt);
  EXPECT_EQ(slot_refusal(slots_point(8, 32, 24)), std::nullopt);
  EXPECT_EQ(slot_refusal(slots_point(8, 4, 24)), std::nullopt);
  EXPECT_THAT(slot_refusal(slots_point(8, 4, 28)).value(), HasSubstr("twice on one rank"));
  SweepPoint without = slots_point(128, 6, 0);
  without.placement = "contiguous";
  EXPECT_EQ(slot_refusal(without), std::nullopt);
  without.redundant_slots = 4;
  EXPECT_THAT(slot_refusal(without).value(), HasSubstr("has no replicas"));
  EXPECT_THROW(make_placement("eplb", {128, 6}), RunError);
  EXPECT_THROW(make_placement("contiguous", {128, 6, 4}), RunError);
}

// Binomial: 4 sigma of 100'000 tokens over r replicas.
TEST(Placement, tokens_spread_evenly_over_replicas) {
  const Placement placement = eplb(8, 8, {900, 300, 1, 1, 1, 1, 1, 1});
  const std::int64_t num_tokens = 100'000;
  for (const std::int32_t expert : {0, 1}) {
    const auto slots = placement.slots_of_expert(expert);
    ASSERT_GE(slots.size(), 2U);
    for (const std::int64_t stride : {1, 2, 8}) {
      std::vector<double> rows(placement.expert_of_slot.size(), 0);
      for (std::int64_t i = 0; i < num_tokens; ++i) {
        ++rows[static_cast<std::size_t>(placement.slot_of(expert, i * stride))];
      }
      const double mean = static_cast<double>(num_tokens) / static_cast<double>(slots.size());
      for (const std::int32_t slot : slots) {
        EXPECT_NEAR(rows[static_cast<std::size_t>(slot)], mean, 4 * std::sqrt(mean));
      }
    }
  }
}

TEST(Placement, unknown_names_are_a_broken_contract) {
  EXPECT_THROW(make_placement("nowhere", {8, 4}), RunError);
}

}  // namespace
}  // namespace epsweep
