#include "workload/dispatch_plan.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "costs/traffic.h"
#include "sample_points.h"

namespace epsweep {
namespace {

std::int64_t total(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

struct World {
  SweepPoint point;
  Trace trace;
  Placement placement;
  std::vector<TokenRange> ranges;
  std::vector<DispatchPlan> plans;
};

World make_world(const SweepPoint& point) {
  const Trace trace = draw_trace(point, 0);
  World world{
      point, trace, place_experts(point, 0, rows_per_expert(trace)), token_ranges(point), {}};
  for (int rank = 0; rank < point.ep_size; ++rank) {
    world.plans.push_back(plan_dispatch(world.trace, world.placement, world.ranges, rank));
  }
  return world;
}

// A small case: up to 12 experts on up to 9 ranks (so also more ranks than experts), up to 6 tokens
// per rank (so also none).
SweepPoint random_point(std::uint64_t number) {
  const RandomStream stream(20, Stream::test, number);
  const auto pick = [&](std::uint64_t index, int low, int high) {
    return low + static_cast<int>(stream.below(index, static_cast<std::uint64_t>(high - low + 1)));
  };
  const int num_experts = pick(0, 1, 12), ep_size = pick(1, 1, 9);
  SweepPoint point = sample_point(number % 3 == 0 ? "zipf" : "uniform", num_experts,
                                  pick(2, 1, std::min(num_experts, 4)), 0, ep_size);
  point.placement = std::vector{"contiguous", "round_robin", "random", "eplb"}.at(number % 4);
  if (point.placement == "eplb") {
    const int least = (ep_size - num_experts % ep_size) % ep_size;
    const int most = num_experts * (ep_size - 1);
    point.redundant_slots = std::min(most, least + ep_size * pick(3, 0, 2));
  }
  point.seed = number;
  point.concurrency.mode = ConcurrencyMode::listed;
  for (int rank = 0; rank < ep_size; ++rank) {
    const auto index = static_cast<std::uint64_t>(10 + 2 * rank);
    const bool empty = pick(index, 0, 9) < 3;
    point.concurrency.tokens_per_rank.push_back(empty ? 0 : pick(index + 1, 1, 6));
  }
  return point;
}

// Where a token's copy for an expert goes.
struct Home {
  int rank, local;
};
Home home_of(const Placement& placement, std::int32_t expert, std::int64_t token) {
  const auto slot = static_cast<std::size_t>(placement.slot_of(expert, token));
  EXPECT_EQ(placement.expert_of_slot[slot], expert);
  const int rank = placement.rank_of_slot[slot];
  const int first = placement.first_slot_of_rank[static_cast<std::size_t>(rank)];
  return {rank, static_cast<int>(slot) - first};
}

// Sorts own assignments by (destination, local expert, token) the slow way.
void expect_send_order(const World& world, int rank) {
  const DispatchPlan& plan = world.plans[static_cast<std::size_t>(rank)];
  std::vector<std::int32_t> slots(plan.expert_of_assignment.size(), -1);
  assign_slots(world.placement.slot_table(), plan.expert_of_assignment, plan.tokens.begin, plan.top_k, slots);
  std::vector<std::int64_t> counts(world.placement.expert_of_slot.size(), 0);
  count_slots(slots, counts);
  EXPECT_EQ(counts, plan.send_rows_per_slot);
  std::vector<std::int32_t> position(plan.expert_of_assignment.size(), -1);
  sort_by_slot(slots, counts, position);

  std::vector<std::tuple<int, int, std::size_t>> order;  // destination, local expert, assignment
  for (std::size_t a = 0; a < position.size(); ++a) {
    const auto token = plan.tokens.begin + static_cast<std::int64_t>(a) / plan.top_k;
    const Home home = home_of(world.placement, plan.expert_of_assignment[a], token);
    ASSERT_EQ(plan.expert_of_assignment[a],
              world.trace.of_token(token)[a % static_cast<std::size_t>(plan.top_k)]);
    order.emplace_back(home.rank, home.local, a);
  }
  std::sort(order.begin(), order.end());
  for (std::size_t row = 0; row < order.size(); ++row) {
    ASSERT_EQ(position[std::get<2>(order[row])], static_cast<std::int32_t>(row));
  }
}

// Lists received rows in receive order, then sorts them by (local expert, source, token).
void expect_expert_order(const World& world, int rank) {
  const DispatchPlan& plan = world.plans[static_cast<std::size_t>(rank)];
  std::vector<std::tuple<int, int, std::int64_t>> received;  // local expert, source, token
  for (int source = 0; source < plan.ep_size; ++source) {
    std::set<std::pair<int, std::int64_t>> rows;
    const TokenRange tokens = world.ranges[static_cast<std::size_t>(source)];
    for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
      for (const std::int32_t expert : world.trace.of_token(token)) {
        const Home home = home_of(world.placement, expert, token);
        if (home.rank == rank) rows.emplace(home.local, token);
      }
    }
    for (const auto& [local, token] : rows) received.emplace_back(local, source, token);
  }
  ASSERT_EQ(received.size(), plan.expert_order.size());
  std::vector<std::tuple<int, int, std::int64_t>> expected = received, actual;
  std::sort(expected.begin(), expected.end());
  for (const std::int32_t row : plan.expert_order) {
    actual.push_back(received.at(static_cast<std::size_t>(row)));
  }
  EXPECT_EQ(actual, expected);
}

void expect_counts_agree(const World& world, int rank) {
  const DispatchPlan& plan = world.plans[static_cast<std::size_t>(rank)];
  const auto me = static_cast<std::size_t>(rank);
  EXPECT_EQ(total(plan.send_rows), plan.num_assignments());
  EXPECT_EQ(total(plan.recv_rows), plan.num_recv_rows());
  EXPECT_EQ(total(plan.rows_per_expert), plan.num_recv_rows());
  EXPECT_EQ(plan.rows_per_expert.size(), world.placement.experts_of_rank[me].size());
  const std::vector<std::int64_t> matrix =
      count_layer(world.trace, world.placement, world.ranges, 2).send_matrix;
  const std::vector<std::int64_t> slot_rows = rows_per_slot(world.placement, world.trace);
  const std::size_t num_local = plan.rows_per_expert.size(), ep_size = world.plans.size();
  for (std::size_t peer = 0; peer < ep_size; ++peer) {
    EXPECT_EQ(plan.recv_rows[peer], world.plans[peer].send_rows[me]);
    EXPECT_EQ(plan.send_rows[peer], matrix[me * ep_size + peer]);
    for (std::size_t local = 0; local < num_local; ++local) {
      const auto slot = static_cast<std::size_t>(world.placement.first_slot_of_rank[me]) + local;
      EXPECT_EQ(plan.recv_rows_per_slot[peer * num_local + local],
                world.plans[peer].send_rows_per_slot[slot]);
      EXPECT_EQ(plan.rows_per_expert[local], slot_rows[slot]);
    }
  }
}

// Replicas share an expert's rows; none is lost and none is doubled.
void expect_rows_conserved(const World& world) {
  const std::vector<std::int64_t> of_slot = rows_per_slot(world.placement, world.trace);
  std::vector<std::int64_t> of_expert(static_cast<std::size_t>(world.trace.num_experts), 0);
  for (std::size_t slot = 0; slot < of_slot.size(); ++slot) {
    of_expert[static_cast<std::size_t>(world.placement.expert_of_slot[slot])] += of_slot[slot];
  }
  EXPECT_EQ(of_expert, rows_per_expert(world.trace));
  const std::vector<std::int64_t> of_rank = sum_by_rank(world.placement, of_slot);
  for (std::size_t rank = 0; rank < world.plans.size(); ++rank) {
    EXPECT_EQ(of_rank[rank], world.plans[rank].num_recv_rows());
  }
}

TEST(DispatchPlan, random_small_cases_agree_with_sorting) {
  bool without_tokens = false, without_experts = false, with_replicas = false;
  for (std::uint64_t number = 0; number < 300; ++number) {
    const World world = make_world(random_point(number));
    SCOPED_TRACE(fmt::format("case {}: E={} P={} k={}", number, world.point.model.num_experts,
                             world.point.ep_size, world.point.model.top_k));
    expect_rows_conserved(world);
    with_replicas |= world.placement.num_slots() > world.placement.num_experts;
    for (int rank = 0; rank < world.point.ep_size; ++rank) {
      expect_send_order(world, rank);
      expect_expert_order(world, rank);
      expect_counts_agree(world, rank);
      without_tokens |= world.plans[static_cast<std::size_t>(rank)].tokens.size() == 0;
      without_experts |= world.plans[static_cast<std::size_t>(rank)].num_local_experts == 0;
    }
    if (HasFailure()) break;
  }
  EXPECT_TRUE(without_tokens);
  EXPECT_TRUE(without_experts);
  EXPECT_TRUE(with_replicas);
}

// C52
TEST(DispatchPlan, all_tokens_to_one_expert_and_no_tokens_at_all) {
  SweepPoint point = sample_point("k_hot", 16, 1, 40, 8);
  point.placement = "contiguous";
  set_param(point.routing, "num_hot", 1);
  set_param(point.routing, "hot_fraction", 1);
  const World one_hot = make_world(point);
  int receiving = 0;
  for (const DispatchPlan& plan : one_hot.plans) receiving += plan.num_recv_rows() == 40 ? 1 : 0;
  EXPECT_EQ(receiving, 1);

  point.concurrency.tokens = 0;
  for (const DispatchPlan& plan : make_world(point).plans) {
    EXPECT_EQ(plan.num_assignments(), 0);
    EXPECT_EQ(plan.num_recv_rows(), 0);
    EXPECT_EQ(plan.rows_per_expert, (std::vector<std::int64_t>{0, 0}));
  }
}

TEST(DispatchPlan, mismatched_inputs_are_refused) {
  SweepPoint point = sample_point("uniform", 8, 2, 10, 4);
  const Trace trace = draw_trace(point, 0);
  const std::vector<TokenRange> ranges = token_ranges(point);
  EXPECT_THROW(plan_dispatch(trace, make_placement("contiguous", {8, 2}), ranges, 0), RunError);
  EXPECT_THROW(plan_dispatch(trace, make_placement("contiguous", {6, 4}), ranges, 0), RunError);
  EXPECT_THROW(plan_dispatch(trace, make_placement("contiguous", {8, 4}), ranges, 4), RunError);
  point.concurrency.tokens = 11;
  EXPECT_THROW(plan_dispatch(trace, make_placement("contiguous", {8, 4}), token_ranges(point), 0),
               RunError);
}

}  // namespace
}  // namespace epsweep
