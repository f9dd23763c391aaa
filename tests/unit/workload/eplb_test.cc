#include "workload/eplb.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace epsweep {
namespace {

// The example in the README of https://github.com/deepseek-ai/EPLB.
const std::vector<std::vector<double>> kReadmeLoads = {
    {90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86},
    {20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27}};

std::vector<int> replica_counts(const std::vector<int>& expert_of_slot, std::size_t num_experts) {
  std::vector<int> counts(num_experts, 0);
  for (const int expert : expert_of_slot) ++counts.at(static_cast<std::size_t>(expert));
  return counts;
}

// Loads of the ranks if replicas share their expert's load evenly.
std::vector<double> rank_loads(const std::vector<double>& loads,
                               const std::vector<int>& expert_of_slot, int ep_size) {
  const std::vector<int> counts = replica_counts(expert_of_slot, loads.size());
  const std::size_t room = expert_of_slot.size() / static_cast<std::size_t>(ep_size);
  std::vector<double> sums(static_cast<std::size_t>(ep_size), 0.0);
  for (std::size_t slot = 0; slot < expert_of_slot.size(); ++slot) {
    const auto expert = static_cast<std::size_t>(expert_of_slot[slot]);
    sums[slot / room] += loads[expert] / counts[expert];
  }
  return sums;
}

double max_over_mean(const std::vector<double>& sums) {
  return *std::ranges::max_element(sums) * static_cast<double>(sums.size()) /
         std::accumulate(sums.begin(), sums.end(), 0.0);
}

TEST(Eplb, published_example_in_the_global_policy) {
  const std::vector<std::vector<int>> expected = {
      {10, 6, 10, 7, 0, 2, 11, 4, 5, 9, 5, 4, 8, 3, 1, 1},
      {1, 10, 2, 4, 5, 11, 5, 0, 6, 7, 6, 3, 8, 8, 9, 7}};
  const std::vector<double> imbalance = {1.073, 1.190};
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const std::vector<int> slots = eplb_slots(kReadmeLoads[layer], 16, 8, Colocation::allowed);
    EXPECT_EQ(slots, expected[layer]);
    EXPECT_NEAR(max_over_mean(rank_loads(kReadmeLoads[layer], slots, 8)), imbalance[layer], 5e-4);
    EXPECT_EQ(count_colocated(slots, 8), 1);
  }
  EXPECT_EQ(replica_counts(expected[0], 12),
            (std::vector<int>{1, 2, 1, 1, 2, 2, 1, 1, 1, 1, 2, 1}));
}

// Replicas apart cost next to no balance.
TEST(Eplb, published_example_with_replicas_apart) {
  const std::vector<double> imbalance = {1.076, 1.190};
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const std::vector<int> slots = eplb_slots(kReadmeLoads[layer], 16, 8, Colocation::avoided);
    EXPECT_EQ(count_colocated(slots, 8), 0);
    EXPECT_EQ(replica_counts(slots, 12),
              replica_counts(eplb_slots(kReadmeLoads[layer], 16, 8, Colocation::allowed), 12));
    EXPECT_NEAR(max_over_mean(rank_loads(kReadmeLoads[layer], slots, 8)), imbalance[layer], 5e-4);
  }
}

TEST(Eplb, one_slot_a_rank_leaves_experts_where_they_are) {
  const std::vector<double> loads = {3, 9, 1, 7};
  for (const Colocation colocation : {Colocation::allowed, Colocation::avoided}) {
    EXPECT_EQ(eplb_slots(loads, 4, 4, colocation), (std::vector<int>{0, 1, 2, 3}));
  }
}

TEST(Eplb, as_many_slots_as_experts_means_no_replicas) {
  const std::vector<int> slots = eplb_slots(kReadmeLoads[0], 12, 4, Colocation::avoided);
  EXPECT_EQ(replica_counts(slots, 12), std::vector<int>(12, 1));
}

TEST(Eplb, equal_loads_go_in_index_order) {
  EXPECT_EQ(eplb_slots(std::vector<double>(6, 5.0), 6, 2, Colocation::allowed),
            (std::vector<int>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(replica_counts(eplb_slots(std::vector<double>(4, 5.0), 6, 2, Colocation::allowed), 4),
            (std::vector<int>{2, 2, 1, 1}));
  // Above 2^24 a float32 would tie these.
  EXPECT_EQ(eplb_slots(std::vector<double>{16777216, 16777217, 1, 1}, 4, 2, Colocation::allowed),
            (std::vector<int>{1, 3, 0, 2}));
}

TEST(Eplb, zero_loads_are_no_trouble) {
  const std::vector<int> counts =
      replica_counts(eplb_slots(std::vector<double>(4, 0.0), 8, 4, Colocation::avoided), 4);
  EXPECT_EQ(std::ranges::count(counts, 0), 0);
  EXPECT_LE(std::ranges::max(counts), 4);
}

TEST(Eplb, replicas_are_apart_and_no_more_than_ranks) {
  for (std::uint64_t number = 0; number < 400; ++number) {
    const RandomStream stream(22, Stream::test, number);
    const int ep_size = 1 + static_cast<int>(stream.below(0, 9));
    const auto num_experts = static_cast<std::size_t>(1 + stream.below(1, 20));
    const std::size_t most = num_experts * static_cast<std::size_t>(ep_size);
    auto num_slots = static_cast<int>(num_experts + stream.below(2, most - num_experts + 1));
    num_slots += (ep_size - num_slots % ep_size) % ep_size;
    std::vector<double> loads;
    for (std::size_t expert = 0; expert < num_experts; ++expert) {
      const double u = stream.uniform(10 + expert);
      loads.push_back(number % 3 == 0 ? 1000 * u * u * u * u : static_cast<double>(u > 0.7));
    }
    const std::vector<int> slots = eplb_slots(loads, num_slots, ep_size, Colocation::avoided);
    SCOPED_TRACE(fmt::format("case {}: E={} S={} P={}", number, num_experts, num_slots, ep_size));
    const std::vector<int> counts = replica_counts(slots, num_experts);
    EXPECT_EQ(slots.size(), static_cast<std::size_t>(num_slots));
    EXPECT_GE(std::ranges::min(counts), 1);
    EXPECT_LE(std::ranges::max(counts), ep_size);
    EXPECT_EQ(count_colocated(slots, ep_size), 0);
  }
}

TEST(Eplb, impossible_requests_are_broken_contracts) {
  const std::vector<double> loads = {1, 2, 3, 4};
  EXPECT_THROW(eplb_slots(loads, 6, 4, Colocation::avoided), RunError);
  EXPECT_THROW(eplb_slots(loads, 2, 2, Colocation::avoided), RunError);
  EXPECT_THROW(eplb_slots(loads, 12, 2, Colocation::avoided), RunError);
  EXPECT_THROW(eplb_slots(std::vector<double>{1, -1}, 2, 2, Colocation::allowed), RunError);
}

// Meant to take less than 100 ms; printed, because machines differ.
TEST(Eplb, a_whole_model_is_quick) {
  const RandomStream stream(23, Stream::test);
  const auto begin = std::chrono::steady_clock::now();
  double worst = 0;
  for (std::uint64_t layer = 0; layer < 58; ++layer) {
    std::vector<double> loads;
    for (std::uint64_t expert = 0; expert < 256; ++expert) {
      const double u = stream.uniform(layer * 256 + expert);
      loads.push_back(1 + 10 * u * u * u);
    }
    const std::vector<int> slots = eplb_slots(loads, 320, 64, Colocation::avoided);
    worst = std::max(worst, max_over_mean(rank_loads(loads, slots, 64)));
    EXPECT_EQ(count_colocated(slots, 64), 0);
  }
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
  std::printf("58 layers, 256 experts, 320 slots, EP64: %.1f ms, worst max/mean %.3f\n",
              spent.count(), worst);
}

}  // namespace
}  // namespace epsweep
