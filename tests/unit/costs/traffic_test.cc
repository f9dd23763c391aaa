#include "costs/traffic.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace epsweep {
namespace {

// 4 ranks with two tokens each, 8 experts contiguous two per rank, top-k 2.
const Trace kHandTrace = {8, 2, 8, {0, 1, 2, 3, 0, 4, 4, 6, 6, 7, 0, 2, 5, 7, 1, 3}};
const std::vector<TokenRange> kHandRanges = {{0, 2}, {2, 4}, {4, 6}, {6, 8}};

TEST(Traffic, hand_worked_trace) {
  const Placement placement = make_placement("contiguous", {8, 4});
  EXPECT_EQ(send_matrix(kHandTrace, placement, kHandRanges),
            (std::vector<std::int64_t>{2, 2, 0, 0,  //
                                       1, 0, 2, 1,  //
                                       1, 1, 0, 2,  //
                                       1, 1, 1, 1}));
  const Traffic traffic = count_traffic(kHandTrace, placement, kHandRanges, 2048);
  EXPECT_EQ(traffic.row_bytes, 2048);
  EXPECT_EQ(traffic.a_copies, 16);
  EXPECT_EQ(traffic.a_self_copies, 3);
  EXPECT_EQ(traffic.b_copies, 13);
  EXPECT_EQ(traffic.b_self_copies, 2);
  EXPECT_EQ(traffic.d_copies, 11);
  EXPECT_EQ(traffic.max_remote_rows_sent, 4);
  EXPECT_EQ(traffic.max_remote_rows_received, 4);
}

// C12
TEST(Traffic, one_rank_sends_nothing_away) {
  const Traffic traffic =
      count_traffic(kHandTrace, make_placement("contiguous", {8, 1}), {{0, 8}}, 2);
  EXPECT_EQ(traffic.a_copies, 16);
  EXPECT_EQ(traffic.a_self_copies, 16);
  EXPECT_EQ(traffic.b_copies, 8);
  EXPECT_EQ(traffic.b_self_copies, 8);
  EXPECT_EQ(traffic.d_copies, 0);
  EXPECT_EQ(traffic.max_remote_rows_sent, 0);
}

TEST(Traffic, no_tokens_no_copies) {
  const Traffic traffic =
      count_traffic({0, 2, 8, {}}, make_placement("contiguous", {8, 2}), {{0, 0}, {0, 0}}, 2);
  EXPECT_EQ(traffic.a_copies + traffic.b_copies + traffic.d_copies, 0);
}

TEST(Traffic, token_ranges_must_fit_the_placement) {
  EXPECT_THROW(count_traffic(kHandTrace, make_placement("contiguous", {8, 2}), kHandRanges, 2),
               RunError);
}

// Distinct experts per token, uneven tokens per rank.
Trace random_trace(std::uint64_t number, int num_experts, int top_k, std::int64_t num_tokens) {
  const RandomStream stream(21, Stream::test, number);
  Trace trace{num_tokens, top_k, num_experts, {}};
  std::uint64_t next = 0;
  for (std::int64_t token = 0; token < num_tokens; ++token) {
    std::set<std::int32_t> experts;
    while (experts.size() < static_cast<std::size_t>(top_k)) {
      experts.insert(
          static_cast<std::int32_t>(stream.below(next++, static_cast<std::uint64_t>(num_experts))));
    }
    trace.experts.insert(trace.experts.end(), experts.begin(), experts.end());
  }
  return trace;
}

TEST(Traffic, random_traces_agree_with_sets) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    const int ep_size = 1 + static_cast<int>(number % 6),
              num_experts = 4 + static_cast<int>(number % 7);
    const Trace trace = random_trace(number, num_experts, 1 + static_cast<int>(number % 4), 23);
    const Placement placement =
        make_placement(number % 2 == 0 ? "contiguous" : "round_robin", {num_experts, ep_size});
    std::vector<TokenRange> ranges;
    std::int64_t begin = 0;
    for (const std::int64_t share : near_equal_split(23, ep_size)) {
      ranges.push_back({begin, begin + share});
      begin += share;
    }
    std::int64_t a_self = 0, b = 0, b_self = 0;
    std::vector<std::int64_t> sent(static_cast<std::size_t>(ep_size)), received = sent;
    for (int home = 0; home < ep_size; ++home) {
      const TokenRange range = ranges[static_cast<std::size_t>(home)];
      for (std::int64_t token = range.begin; token < range.end; ++token) {
        std::set<int> ranks;
        for (const std::int32_t expert : trace.of_token(token)) {
          const int rank = placement.rank_of(expert, token);
          ranks.insert(rank);
          if (rank == home) {
            ++a_self;
          } else {
            ++sent[static_cast<std::size_t>(home)];
            ++received[static_cast<std::size_t>(rank)];
          }
        }
        b += static_cast<std::int64_t>(ranks.size());
        b_self += static_cast<std::int64_t>(ranks.count(home));
      }
    }
    const Traffic traffic = count_traffic(trace, placement, ranges, 64);
    EXPECT_EQ(traffic.a_copies, 23 * trace.top_k);
    EXPECT_EQ(traffic.a_self_copies, a_self);
    EXPECT_EQ(traffic.b_copies, b);
    EXPECT_EQ(traffic.b_self_copies, b_self);
    EXPECT_EQ(traffic.d_copies, b - b_self);
    EXPECT_EQ(traffic.max_remote_rows_sent, *std::max_element(sent.begin(), sent.end()));
    EXPECT_EQ(traffic.max_remote_rows_received,
              *std::max_element(received.begin(), received.end()));
  }
}

}  // namespace
}  // namespace epsweep
