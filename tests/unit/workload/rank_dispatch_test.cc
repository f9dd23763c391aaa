#include "workload/rank_dispatch.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include <gmock/gmock.h>

#include "base/random.h"
#include "costs/traffic.h"
#include "sample_points.h"

namespace epsweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct World {
  Trace trace;
  Placement placement;
  std::vector<TokenRange> ranges;
  std::vector<RankDispatch> plans;  // [ep_size]
};

World plan_all(Trace trace, Placement placement, std::vector<TokenRange> ranges) {
  World world{std::move(trace), std::move(placement), std::move(ranges), {}};
  for (int rank = 0; rank < world.placement.ep_size; ++rank) {
    world.plans.push_back(plan_rank_dispatch(world.trace, world.placement, world.ranges, rank));
  }
  return world;
}

// Four experts on two ranks, two tokens on the first and one on the second.
World small_world() {
  return plan_all({.num_tokens = 3, .top_k = 2, .num_experts = 4, .experts = {0, 2, 1, 0, 3, 2}},
                  make_placement("contiguous", {.num_experts = 4, .ep_size = 2}), {{0, 2}, {2, 3}});
}

TEST(RankDispatch, SourceByHand) {
  const World world = small_world();
  const RankDispatch& plan = world.plans[0];
  // To rank 0: token 0 for expert 0, token 1 for experts 1 and 0. To rank 1: token 0 for expert 2.
  EXPECT_THAT(plan.send_copies, ElementsAre(2, 1));
  EXPECT_THAT(plan.token_of_copy, ElementsAre(0, 1, 0));
  EXPECT_THAT(plan.sent_uses, ElementsAre(2 * 0 + 1, 2 * 1 + 1, 2 * 0, 2 * 0 + 1));
  EXPECT_THAT(plan.assignment_of_use, ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(plan.first_of_token, ElementsAre(0, 2, 3));
  EXPECT_THAT(plan.copies_of_token, ElementsAre(0, 2, 1));
}

TEST(RankDispatch, ReceiverByHand) {
  const World world = small_world();
  const RankDispatch& plan = world.plans[1];
  // Token 0 for expert 2, then token 2 for experts 3 and 2: rows 0 and 1 of expert 2, row 2 of 3.
  EXPECT_THAT(plan.recv_copies, ElementsAre(1, 1));
  EXPECT_THAT(plan.first_use_of_copy, ElementsAre(0, 1, 3));
  EXPECT_THAT(plan.row_of_use, ElementsAre(0, 2, 1));
  EXPECT_THAT(plan.copy_of_row, ElementsAre(0, 1, 1));
}

// Up to 12 experts on up to 9 ranks (so also ranks without slots), 0 to 6 tokens per rank, with and
// without replicas.
World random_world(std::uint64_t number) {
  const RandomStream stream(21, Stream::test, number);
  const auto pick = [&](std::uint64_t index, int low, int high) {
    return low + static_cast<int>(stream.below(index, static_cast<std::uint64_t>(high - low + 1)));
  };
  const int num_experts = pick(0, 1, 12), ep_size = pick(1, 1, 9);
  SweepPoint point = sample_point(number % 3 == 0 ? "zipf" : "uniform", num_experts,
                                  pick(2, 1, std::min(num_experts, 5)), 0, ep_size);
  point.placement = number % 2 == 0 ? "eplb" : "random";
  if (point.placement == "eplb") {
    const int least = (ep_size - num_experts % ep_size) % ep_size;
    point.redundant_slots = std::min(num_experts * (ep_size - 1), least + ep_size * pick(3, 0, 2));
  }
  point.seed = number;
  point.concurrency.mode = ConcurrencyMode::listed;
  for (int rank = 0; rank < ep_size; ++rank) {
    const auto index = static_cast<std::uint64_t>(10 + 2 * rank);
    point.concurrency.tokens_per_rank.push_back(pick(index, 0, 9) < 3 ? 0 : pick(index + 1, 1, 6));
  }
  if (number % 7 == 0) {  // no tokens at all, or one
    std::ranges::fill(point.concurrency.tokens_per_rank, 0);
    point.concurrency.tokens_per_rank.back() = number % 2 == 0 ? 0 : 1;
  }
  const Trace trace = draw_trace(point, 0);
  return plan_all(trace, place_experts(point, 0, rows_per_expert(trace)), token_ranges(point));
}

constexpr std::uint64_t kNumWorlds = 400;

// The local slots that each (source, destination, token) feeds, in choice order.
using Feeds = std::map<int, std::map<int, std::map<std::int64_t, std::vector<int>>>>;
Feeds feeds_of(const World& world) {
  Feeds feeds;
  for (int source = 0; source < world.placement.ep_size; ++source) {
    const TokenRange tokens = world.ranges[static_cast<std::size_t>(source)];
    for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
      for (const std::int32_t expert : world.trace.of_token(token)) {
        const std::int32_t slot = world.placement.slot_of(expert, token);
        const int rank = world.placement.rank_of_slot[static_cast<std::size_t>(slot)];
        const int first = world.placement.first_slot_of_rank[static_cast<std::size_t>(rank)];
        feeds[source][rank][token].push_back(slot - first);
      }
    }
  }
  return feeds;
}

TEST(RankDispatch, SendsEveryTokenOncePerDestinationWithItsUses) {
  for (std::uint64_t number = 0; number < kNumWorlds; ++number) {
    const World world = random_world(number);
    Feeds feeds = feeds_of(world);
    for (int source = 0; source < world.placement.ep_size; ++source) {
      const RankDispatch& plan = world.plans[static_cast<std::size_t>(source)];
      std::vector<std::int64_t> copies;
      std::vector<std::int32_t> tokens, words;
      std::map<std::int64_t, std::vector<std::int32_t>> copies_of;
      for (int rank = 0; rank < world.placement.ep_size; ++rank) {
        copies.push_back(std::ssize(feeds[source][rank]));
        for (const auto& [token, slots] : feeds[source][rank]) {
          copies_of[token].push_back(static_cast<std::int32_t>(tokens.size()));
          tokens.push_back(static_cast<std::int32_t>(
              token - world.ranges[static_cast<std::size_t>(source)].begin));
          EXPECT_EQ(std::set<int>(slots.begin(), slots.end()).size(), slots.size());
          for (std::size_t i = 0; i < slots.size(); ++i) {
            words.push_back(2 * slots[i] + (i == 0 ? 1 : 0));
          }
        }
      }
      ASSERT_EQ(plan.send_copies, copies) << number;
      ASSERT_EQ(plan.token_of_copy, tokens) << number;
      ASSERT_EQ(plan.sent_uses, words) << number;
      std::vector<std::int32_t> by_token, first = {0};
      for (const auto& [token, of_token] : copies_of) {
        by_token.insert(by_token.end(), of_token.begin(), of_token.end());
        first.push_back(static_cast<std::int32_t>(by_token.size()));
      }
      ASSERT_EQ(plan.copies_of_token, by_token) << number;
      ASSERT_EQ(plan.first_of_token, first) << number;
    }
  }
}

TEST(RankDispatch, UsesAreThePermutedAssignments) {
  for (std::uint64_t number = 0; number < kNumWorlds; ++number) {
    const World world = random_world(number);
    for (int rank = 0; rank < world.placement.ep_size; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      const RankDispatch& plan = world.plans[at];
      std::vector<std::int32_t> sorted = plan.assignment_of_use, all(sorted.size());
      std::ranges::sort(sorted);
      std::iota(all.begin(), all.end(), 0);
      ASSERT_EQ(sorted, all);
      // By destination, then token, then choice: use words agree with the assignment's slot.
      for (std::size_t use = 0; use < all.size(); ++use) {
        const std::int32_t a = plan.assignment_of_use[use];
        const std::int64_t token = world.ranges[at].begin + a / world.trace.top_k;
        const auto choice = static_cast<std::size_t>(a % world.trace.top_k);
        const std::int32_t slot =
            world.placement.slot_of(world.trace.of_token(token)[choice], token);
        const auto to =
            static_cast<std::size_t>(world.placement.rank_of_slot[static_cast<std::size_t>(slot)]);
        ASSERT_EQ(plan.sent_uses[use] / 2, slot - world.placement.first_slot_of_rank[to]);
      }
    }
  }
}

// Rows in expert order are those of exchange unit `assignment`, each fed by its token's copy.
TEST(RankDispatch, ReceiverRepeatsCopiesInExpertOrder) {
  for (std::uint64_t number = 0; number < kNumWorlds; ++number) {
    const World world = random_world(number);
    Feeds feeds = feeds_of(world);
    for (int rank = 0; rank < world.placement.ep_size; ++rank) {
      const RankDispatch& plan = world.plans[static_cast<std::size_t>(rank)];
      std::vector<std::tuple<int, int, std::int64_t, std::int32_t>> rows;  // slot, source, token
      std::vector<std::int64_t> copies;
      std::int32_t copy = 0;
      for (int source = 0; source < world.placement.ep_size; ++source) {
        copies.push_back(std::ssize(feeds[source][rank]));
        for (const auto& [token, slots] : feeds[source][rank]) {
          for (const int slot : slots) rows.emplace_back(slot, source, token, copy);
          ++copy;
        }
      }
      std::ranges::sort(rows);
      ASSERT_EQ(plan.recv_copies, copies) << number;
      ASSERT_EQ(plan.num_recv_copies(), copy);
      ASSERT_EQ(plan.copy_of_row.size(), rows.size());
      for (std::size_t row = 0; row < rows.size(); ++row) {
        ASSERT_EQ(plan.copy_of_row[row], std::get<3>(rows[row])) << number;
      }
      // Every row is in exactly one copy's list, that of the copy that feeds it.
      std::vector<int> seen(rows.size());
      for (std::int32_t c = 0; c < copy; ++c) {
        for (auto use =
                 static_cast<std::size_t>(plan.first_use_of_copy[static_cast<std::size_t>(c)]);
             use <
             static_cast<std::size_t>(plan.first_use_of_copy[static_cast<std::size_t>(c) + 1]);
             ++use) {
          const auto row = static_cast<std::size_t>(plan.row_of_use[use]);
          ASSERT_EQ(plan.copy_of_row[row], c);
          ++seen[row];
        }
      }
      ASSERT_EQ(std::ranges::count(seen, 1), std::ssize(seen));
    }
  }
}

TEST(RankDispatch, CopiesAreLetterB) {
  for (std::uint64_t number = 0; number < kNumWorlds; ++number) {
    const World world = random_world(number);
    const Traffic traffic = count_layer(world.trace, world.placement, world.ranges, 2).traffic;
    std::int64_t copies = 0, own = 0;
    for (std::size_t rank = 0; rank < world.plans.size(); ++rank) {
      copies += world.plans[rank].num_sent_copies();
      own += world.plans[rank].send_copies[rank];
    }
    EXPECT_EQ(copies, traffic.b_copies);
    EXPECT_EQ(own, traffic.b_self_copies);
  }
}

// What a rank received in small_world(), to be damaged: counts of rank 1.
struct Received {
  std::vector<std::int32_t> uses = {1, 3, 0};
  std::vector<std::int64_t> copies = {1, 1}, uses_of = {1, 2}, rows = {2, 1};
  std::vector<std::int32_t> copy_of_row = std::vector<std::int32_t>(3),
                            first_use = std::vector<std::int32_t>(3),
                            row_of_use = std::vector<std::int32_t>(3);

  bool order() {
    std::vector<std::int64_t> next_row(rows.size());
    return order_uses(uses, {.copies = copies, .uses = uses_of, .rows_per_expert = rows},
                      {.copy_of_row = copy_of_row,
                       .first_use_of_copy = first_use,
                       .row_of_use = row_of_use,
                       .next_row = next_row});
  }
};

TEST(OrderUses, NoticesEveryDamagedWordAndStaysInside) {
  EXPECT_TRUE(Received().order());
  for (std::size_t at = 0; at < 3; ++at) {
    for (const std::int32_t word : {-1, -2, 0, 1, 2, 3, 4, 5, 1000, INT32_MAX, INT32_MIN}) {
      Received received;
      if (received.uses[at] == word) continue;
      received.uses[at] = word;
      EXPECT_FALSE(received.order()) << at << " " << word;
      for (const std::int32_t row : received.row_of_use) EXPECT_TRUE(row >= 0 && row < 3);
      for (const std::int32_t copy : received.copy_of_row) EXPECT_TRUE(copy >= 0 && copy < 2);
      EXPECT_TRUE(std::ranges::is_sorted(received.first_use));
      EXPECT_EQ(received.first_use.front(), 0);
      EXPECT_EQ(received.first_use.back(), 3);
    }
  }
}

TEST(MessageLayout, ByHand) {
  // 96-byte rows are three granules of 32 bytes; three uses fit one, five do not.
  const std::vector<std::int64_t> copies = {2, 0, 3}, uses = {3, 0, 5};
  std::vector<std::int64_t> granules(3);
  std::vector<std::int32_t> copy_at(5), use_at(3);
  EXPECT_EQ(granule_bytes(96), 32);
  EXPECT_EQ(lay_out_messages({.copies = copies, .uses = uses}, 96,
                             {.granules = granules, .copy_at = copy_at, .use_at = use_at}),
            3);
  EXPECT_THAT(granules, ElementsAre(7, 0, 11));
  EXPECT_THAT(copy_at, ElementsAre(0, 3, 7, 10, 13));
  EXPECT_THAT(use_at, ElementsAre(6, 16, 17));
}

TEST(MessageLayout, GranulesDivideRowsAndAreAtMost64Bytes) {
  EXPECT_EQ(granule_bytes(4096), 64);
  EXPECT_EQ(granule_bytes(14336), 64);
  EXPECT_EQ(granule_bytes(72), 8);
  EXPECT_EQ(granule_bytes(66), 2);
  EXPECT_EQ(use_granules(1, 64), 1);
  EXPECT_EQ(use_granules(8, 64), 1);
  EXPECT_EQ(use_granules(9, 64), 2);
  EXPECT_EQ(use_granules(1, 2), 4);
  EXPECT_EQ(use_granules(0, 64), 0);
}

// 2^31 - 1 positions of 64 bytes; a row of 2^21 bytes takes 2^15 of them.
TEST(MessageLayout, PositionsBeyond32BitsAreRefused) {
  SweepPoint point = sample_point("uniform", 8, 2, 65'000, 2);
  point.model.expert_io_dim = 1 << 20;
  point.exchange_unit = ExchangeUnit::rank;
  EXPECT_EQ(position_refusal(point), std::nullopt);
  point.concurrency.tokens = 65'536;
  EXPECT_THAT(position_refusal(point).value_or(""),
              HasSubstr("exchange_unit rank: 65536 copies of 2097152 bytes"));
  point.exchange_unit = ExchangeUnit::assignment;
  EXPECT_EQ(position_refusal(point), std::nullopt);
}

}  // namespace
}  // namespace epsweep
