#include <algorithm>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "plan/plan.h"
#include "workload/eplb.h"
#include "workload/placement.h"

namespace epsweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The example in the README of https://github.com/deepseek-ai/EPLB: 12 experts in 4 groups, 16
// slots, 2 nodes, 8 GPUs.
const std::vector<std::vector<std::int64_t>> kReadmeLoads = {
    {90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86},
    {20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27}};
const std::vector<std::vector<int>> kReadmeSlots = {
    {5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1},
    {7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1}};

std::vector<double> as_loads(const std::vector<std::int64_t>& rows) {
  return {rows.begin(), rows.end()};
}

TEST(EplbHierarchical, published_example) {
  const std::vector<double> imbalance = {1.208, 1.242};
  for (std::size_t layer = 0; layer < 2; ++layer) {
    for (const Colocation colocation : {Colocation::allowed, Colocation::avoided}) {
      const std::vector<double> loads = as_loads(kReadmeLoads[layer]);
      const std::vector<int> slots =
          eplb_hierarchical_slots(loads, 16, 8, {.num_groups = 4, .num_hosts = 2}, colocation);
      EXPECT_EQ(slots, kReadmeSlots[layer]);
      std::vector<double> ranks(8, 0.0);
      for (std::size_t slot = 0; slot < 16; ++slot) {
        const auto replicas = std::ranges::count(slots, slots[slot]);
        ranks[slot / 2] +=
            loads[static_cast<std::size_t>(slots[slot])] / static_cast<double>(replicas);
      }
      const double mean = std::accumulate(ranks.begin(), ranks.end(), 0.0) / 8;
      EXPECT_NEAR(std::ranges::max(ranks) / mean, imbalance[layer], 5e-4);
    }
  }
}

TEST(EplbHierarchical, one_host_is_the_global_policy) {
  for (const std::vector<std::int64_t>& rows : kReadmeLoads) {
    EXPECT_EQ(eplb_hierarchical_slots(as_loads(rows), 16, 8, {.num_groups = 4, .num_hosts = 1},
                                      Colocation::allowed),
              eplb_slots(as_loads(rows), 16, 8, Colocation::allowed));
  }
  // Ties go by expert, not by the order of the groups: 3 | 0 1 and then 2 to the first rank.
  EXPECT_EQ(eplb_hierarchical_slots(std::vector<double>{1, 1, 1, 3}, 4, 2,
                                    {.num_groups = 2, .num_hosts = 1}, Colocation::allowed),
            (std::vector<int>{3, 2, 0, 1}));
}

// Groups of equal load go to hosts in turn; with as many groups as hosts they stay in order.
TEST(EplbHierarchical, equal_groups_go_in_index_order) {
  const std::vector<double> loads(8, 3.0);
  EXPECT_EQ(
      eplb_hierarchical_slots(loads, 8, 2, {.num_groups = 4, .num_hosts = 2}, Colocation::avoided),
      (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(
      eplb_hierarchical_slots(loads, 8, 2, {.num_groups = 2, .num_hosts = 2}, Colocation::avoided),
      (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

// Whatever the loads: groups whole on one host, replicas apart, as many groups on every host.
TEST(EplbHierarchical, groups_stay_whole_and_replicas_apart) {
  for (std::uint64_t number = 0; number < 200; ++number) {
    const RandomStream stream(31, Stream::test, number);
    const int num_hosts = 1 + static_cast<int>(stream.below(0, 4));
    const int ranks_per_host = 1 + static_cast<int>(stream.below(1, 4));
    const int num_groups = num_hosts * (1 + static_cast<int>(stream.below(2, 3)));
    const int group_size = ranks_per_host * (1 + static_cast<int>(stream.below(3, 3)));
    const int ep_size = num_hosts * ranks_per_host, num_experts = num_groups * group_size;
    const auto doublings = static_cast<int>(stream.below(4, 2));
    const int num_slots = ranks_per_host == 1 ? num_experts : num_experts * (1 + doublings);
    std::vector<double> loads;
    for (int e = 0; e < num_experts; ++e) {
      const double u = stream.uniform(10 + static_cast<std::uint64_t>(e));
      loads.push_back(number % 3 == 0 ? 1000 * u * u * u * u : static_cast<double>(u > 0.7));
    }
    const std::vector<int> slots = eplb_hierarchical_slots(
        loads, num_slots, ep_size, {.num_groups = num_groups, .num_hosts = num_hosts},
        Colocation::avoided);
    ASSERT_EQ(slots.size(), static_cast<std::size_t>(num_slots));
    EXPECT_EQ(count_colocated(slots, ep_size), 0);
    std::vector<int> host_of_group(static_cast<std::size_t>(num_groups), -1);
    std::vector<int> seen(static_cast<std::size_t>(num_experts), 0);
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      const auto host = static_cast<int>(slot * static_cast<std::size_t>(num_hosts) / slots.size());
      int& of_group = host_of_group[static_cast<std::size_t>(slots[slot] / group_size)];
      if (of_group < 0) of_group = host;
      EXPECT_EQ(of_group, host);
      ++seen[static_cast<std::size_t>(slots[slot])];
    }
    EXPECT_GE(std::ranges::min(seen), 1);
    EXPECT_LE(std::ranges::max(seen), ranks_per_host);
    for (int host = 0; host < num_hosts; ++host) {
      EXPECT_EQ(std::ranges::count(host_of_group, host), num_groups / num_hosts);
    }
  }
}

TEST(EplbHierarchical, broken_contracts) {
  const std::vector<double> loads(8, 1.0);
  const auto with = [&](const HostSplit& split, int ep_size) {
    return eplb_hierarchical_slots(loads, 8, ep_size, split, Colocation::allowed);
  };
  EXPECT_THROW(with({.num_groups = 3, .num_hosts = 1}, 4), RunError);
  EXPECT_THROW(with({.num_groups = 4, .num_hosts = 3}, 4), RunError);
  EXPECT_THROW(with({.num_groups = 4, .num_hosts = 4}, 2), RunError);
}

SweepPoint hosts_point(int num_experts, int num_groups, int ep_size, int redundant_slots,
                       const Topology& topology) {
  SweepPoint point;
  point.model.name = "m";
  point.model.num_experts = num_experts;
  point.model.router.num_groups = num_groups;
  point.model.router.topk_groups = num_groups;
  point.ep_size = ep_size;
  point.placement = "eplb_hierarchical";
  point.redundant_slots = redundant_slots;
  point.topology = topology;
  return point;
}

Topology regular(int ranks_per_host) {
  Topology topology;
  topology.ranks_per_host = ranks_per_host;
  return topology;
}

Topology listed(const std::vector<int>& host_of_rank) {
  Topology topology;
  topology.host_of_rank = host_of_rank;
  return topology;
}

TEST(EplbHierarchicalPlacement, takes_hosts_from_the_topology) {
  for (std::size_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(
        place_experts(hosts_point(12, 4, 8, 4, regular(4)), 0, kReadmeLoads[layer]).expert_of_slot,
        kReadmeSlots[layer]);
  }
}

// The first host's ranks are EP ranks 0, 2, 4, 6: they get its blocks of two slots, in order.
TEST(EplbHierarchicalPlacement, interleaved_hosts_get_their_own_slots) {
  const SweepPoint point = hosts_point(12, 4, 8, 4, listed({0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(place_experts(point, 0, kReadmeLoads[0]).expert_of_slot,
            (std::vector<int>{5, 6, 10, 9, 5, 7, 10, 2, 8, 4, 0, 1, 3, 4, 11, 1}));
}

TEST(EplbHierarchicalPlacement, one_host_places_like_eplb) {
  SweepPoint point = hosts_point(12, 4, 8, 4, regular(8));
  const std::vector<int> slots = place_experts(point, 0, kReadmeLoads[0]).expert_of_slot;
  point.placement = "eplb";
  EXPECT_EQ(slots, place_experts(point, 0, kReadmeLoads[0]).expert_of_slot);
}

// C43
TEST(EplbHierarchicalPlacement, nothing_to_do_moves_nothing) {
  for (const std::int64_t rows : {0, 5}) {
    EXPECT_EQ(
        place_experts(hosts_point(8, 4, 4, 0, regular(2)), 0, std::vector<std::int64_t>(8, rows))
            .expert_of_slot,
        (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

std::string refusal(const SweepPoint& point) {
  return slot_refusal(point).value_or("");
}

TEST(EplbHierarchicalPlacement, refusals_say_what_would_do) {
  EXPECT_EQ(refusal(hosts_point(12, 4, 8, 4, regular(4))), "");
  EXPECT_THAT(refusal(hosts_point(12, 4, 8, 4, {})), HasSubstr("topology: {ranks_per_host: 8}"));
  // C41
  EXPECT_THAT(refusal(hosts_point(12, 4, 6, 0, listed({0, 0, 1, 1, 2, 3}))),
              AllOf(HasSubstr("6 ranks over 4 hosts: ranks per host 2, 2, 1, 1"),
                    HasSubstr("fit on 1, 2, 3, 6 hosts")));
  EXPECT_THAT(refusal(hosts_point(24, 8, 6, 0, regular(2))),
              AllOf(HasSubstr("8 groups of m over 3 hosts"), HasSubstr("would do: 1, 2, 4, 8")));
  EXPECT_THAT(refusal(hosts_point(16, 1, 4, 0, regular(2))),
              AllOf(HasSubstr("1 group of m over 2 hosts"), HasSubstr("would do: 1")));
  EXPECT_THAT(refusal(hosts_point(12, 4, 8, 0, regular(4))), HasSubstr("smallest that is: 4"));
  // Two ranks a host: an expert has at most two replicas.
  EXPECT_EQ(refusal(hosts_point(16, 4, 8, 16, regular(2))), "");
  EXPECT_THAT(refusal(hosts_point(16, 4, 8, 24, regular(2))),
              AllOf(HasSubstr("has 2 ranks"), HasSubstr("at most 16")));
}

}  // namespace
}  // namespace epsweep
