#include "costs/traffic.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "unit/workload/sample_points.h"

namespace epsweep {
namespace {

// 4 ranks with two tokens each, 8 experts contiguous two per rank, top-k 2.
const Trace kHandTrace = {8, 2, 8, {0, 1, 2, 3, 0, 4, 4, 6, 6, 7, 0, 2, 5, 7, 1, 3}};
const std::vector<TokenRange> kHandRanges = {{0, 2}, {2, 4}, {4, 6}, {6, 8}};

Traffic count(const Trace& trace, const Placement& placement, const std::vector<TokenRange>& ranges,
              const GroupPlaces* places = nullptr) {
  return count_layer(trace, placement, ranges, 2048, places).traffic;
}

GroupPlaces on_domains(std::vector<int> domain_of_rank) {
  const int num_domains = std::ranges::max(domain_of_rank) + 1;
  return {.host_of_rank = domain_of_rank,
          .domain_of_rank = domain_of_rank,
          .num_hosts = num_domains,
          .num_domains = num_domains};
}

TEST(Traffic, hand_worked_trace) {
  const Placement placement = make_placement("contiguous", {8, 4});
  EXPECT_EQ(count_layer(kHandTrace, placement, kHandRanges, 2048).send_matrix,
            (std::vector<std::int64_t>{2, 2, 0, 0,  //
                                       1, 0, 2, 1,  //
                                       1, 1, 0, 2,  //
                                       1, 1, 1, 1}));
  const LayerCounts counts = count_layer(kHandTrace, placement, kHandRanges, 2048);
  EXPECT_EQ(counts.rows_per_slot, (std::vector<std::int64_t>{3, 2, 2, 2, 2, 1, 2, 2}));
  const Traffic& traffic = counts.traffic;
  EXPECT_EQ(traffic.row_bytes, 2048);
  EXPECT_EQ(traffic.a_copies, 16);
  EXPECT_EQ(traffic.a_self_copies, 3);
  EXPECT_EQ(traffic.b_copies, 13);
  EXPECT_EQ(traffic.b_self_copies, 2);
  EXPECT_EQ(traffic.d_copies, 11);
  EXPECT_EQ(traffic.max_remote_rows_sent, 4);
  EXPECT_EQ(traffic.max_remote_rows_received, 4);
  EXPECT_EQ(traffic.max_d_copies_sent, 4);
  EXPECT_EQ(traffic.max_d_copies_received, 3);
  EXPECT_FALSE(traffic.domains.has_value());
}

// Case C22: ranks 0 and 2 on one host, 1 and 3 on the other.
TEST(Traffic, cyclic_hosts) {
  const GroupPlaces places = on_domains({0, 1, 0, 1});
  const Traffic traffic =
      count(kHandTrace, make_placement("contiguous", {8, 4}), kHandRanges, &places);
  EXPECT_EQ(traffic.b_self_copies, 2);
  EXPECT_EQ(traffic.domains->b_intra_copies, 3);
  EXPECT_EQ(traffic.b_copies - traffic.b_self_copies - traffic.domains->b_intra_copies, 8);
  EXPECT_EQ(traffic.d_copies, 11);
  EXPECT_EQ(traffic.domains->e_copies, 7);
  EXPECT_EQ(traffic.domains->e_copies * traffic.row_bytes, 14336);
  EXPECT_EQ(traffic.domains->c_copies, 12);
  EXPECT_EQ(traffic.domains->a_intra_copies, 3);
  const CopiesPerToken copies = copies_per_token(traffic, 8).value();
  EXPECT_DOUBLE_EQ(copies.a, 2);
  EXPECT_DOUBLE_EQ(copies.a_self, 3 / 8.0);
  EXPECT_DOUBLE_EQ(copies.domains->a_intra, 3 / 8.0);
  EXPECT_DOUBLE_EQ(copies.domains->a_inter, 10 / 8.0);
  EXPECT_DOUBLE_EQ(copies.domains->b_inter, 8 / 8.0);
  EXPECT_DOUBLE_EQ(copies.domains->c, 12 / 8.0);
  EXPECT_DOUBLE_EQ(copies.domains->e, 7 / 8.0);
}

// Case C23: ranks 0 to 2 on one host, 3 alone. Halving the ranks would give 2, 4 and 7.
TEST(Traffic, uneven_hosts) {
  const GroupPlaces places = on_domains({0, 0, 0, 1});
  const Traffic traffic =
      count(kHandTrace, make_placement("contiguous", {8, 4}), kHandRanges, &places);
  EXPECT_EQ(traffic.b_self_copies, 2);
  EXPECT_EQ(traffic.domains->b_intra_copies, 6);
  EXPECT_EQ(traffic.b_copies - traffic.b_self_copies - traffic.domains->b_intra_copies, 5);
  EXPECT_EQ(traffic.domains->c_copies, 10);
  EXPECT_EQ(traffic.domains->e_copies, 4);
  EXPECT_EQ(traffic.domains->a_intra_copies, 7);
}

// A scale-up domain over several hosts, case C24 in small.
TEST(Traffic, the_domain_counts_and_not_the_host) {
  GroupPlaces places = on_domains({0, 0, 0, 0});
  places.host_of_rank = {0, 1, 2, 3};
  places.num_hosts = 4;
  const Traffic traffic =
      count(kHandTrace, make_placement("contiguous", {8, 4}), kHandRanges, &places);
  EXPECT_EQ(traffic.domains->e_copies, 0);
  EXPECT_EQ(traffic.domains->c_copies, 8);
  EXPECT_EQ(traffic.domains->b_intra_copies, 11);
}

// C12
TEST(Traffic, one_rank_sends_nothing_away) {
  const GroupPlaces places = on_domains({0});
  const Traffic traffic =
      count(kHandTrace, make_placement("contiguous", {8, 1}), {{0, 8}}, &places);
  EXPECT_EQ(traffic.a_copies, 16);
  EXPECT_EQ(traffic.a_self_copies, 16);
  EXPECT_EQ(traffic.b_copies, 8);
  EXPECT_EQ(traffic.b_self_copies, 8);
  EXPECT_EQ(traffic.d_copies, 0);
  EXPECT_EQ(traffic.domains->c_copies, 8);
  EXPECT_EQ(traffic.domains->e_copies, 0);
  EXPECT_EQ(traffic.max_remote_rows_sent, 0);
}

TEST(Traffic, no_tokens_no_copies) {
  const Traffic traffic =
      count({0, 2, 8, {}}, make_placement("contiguous", {8, 2}), {{0, 0}, {0, 0}});
  EXPECT_EQ(traffic.a_copies + traffic.b_copies + traffic.d_copies, 0);
  EXPECT_FALSE(copies_per_token(traffic, 0).has_value());
}

TEST(Traffic, ranges_and_places_must_fit_the_placement) {
  EXPECT_THROW(count(kHandTrace, make_placement("contiguous", {8, 2}), kHandRanges), RunError);
  const GroupPlaces places = on_domains({0, 1});
  EXPECT_THROW(count(kHandTrace, make_placement("contiguous", {8, 4}), kHandRanges, &places),
               RunError);
}

// Case C15: every row that is sent is received, and nothing else.
TEST(Traffic, send_matrix_conserves_rows_of_every_distribution) {
  for (const std::string& name : DistributionCatalog::instance().names()) {
    SCOPED_TRACE(name);
    // The shipped recording has fewer tokens.
    const std::int64_t num_tokens = name == "recorded_trace" ? 64 : 1000;
    const SweepPoint point = sample_point(name, 64, 8, num_tokens, 6);
    const Trace trace = draw_trace(point, 0);
    const Placement placement = make_placement("contiguous", {64, 6});
    const std::vector<TokenRange> ranges = token_ranges(point);
    const std::vector<std::int64_t> matrix = count_layer(trace, placement, ranges, 2).send_matrix;
    std::vector<std::int64_t> sent(6), received(6);
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      sent[i / 6] += matrix[i];
      received[i % 6] += matrix[i];
    }
    std::int64_t tokens = 0;
    for (std::size_t rank = 0; rank < 6; ++rank) {
      EXPECT_EQ(ranges[rank].begin, tokens);
      tokens = ranges[rank].end;
      EXPECT_EQ(sent[rank], ranges[rank].size() * 8);
    }
    EXPECT_EQ(tokens, num_tokens);
    EXPECT_EQ(std::accumulate(sent.begin(), sent.end(), std::int64_t{0}), num_tokens * 8);
    EXPECT_EQ(received, sum_by_rank(placement, rows_per_slot(placement, trace)));
    const std::vector<std::int64_t> rows = rows_per_expert(trace);
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), num_tokens * 8);
    for (std::int64_t token = 0; token < num_tokens; ++token) {
      const auto experts = trace.of_token(token);
      const std::set<std::int32_t> distinct(experts.begin(), experts.end());
      EXPECT_EQ(distinct.size(), 8U);
      EXPECT_GE(*distinct.begin(), 0);
      EXPECT_LT(*distinct.rbegin(), 64);
    }
  }
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

// What count_layer() finds, with sets instead of marks.
struct SetCounts {
  std::int64_t a_self = 0, a_intra = 0, b = 0, b_self = 0, b_intra = 0, c = 0, e = 0;
  std::vector<std::int64_t> a_sent, a_received, d_sent, d_received;
};
SetCounts count_with_sets(const Trace& trace, const Placement& placement,
                          const std::vector<TokenRange>& ranges, const std::vector<int>& domains) {
  SetCounts found;
  found.a_sent = found.a_received = found.d_sent = found.d_received =
      std::vector<std::int64_t>(ranges.size());
  for (std::size_t home = 0; home < ranges.size(); ++home) {
    for (std::int64_t token = ranges[home].begin; token < ranges[home].end; ++token) {
      std::set<std::size_t> to_ranks;
      std::set<int> to_domains;
      for (const std::int32_t expert : trace.of_token(token)) {
        const auto rank = static_cast<std::size_t>(placement.rank_of(expert, token));
        to_ranks.insert(rank);
        to_domains.insert(domains[rank]);
        found.a_self += rank == home ? 1 : 0;
        found.a_intra += rank != home && domains[rank] == domains[home] ? 1 : 0;
        if (rank != home) ++found.a_sent[home], ++found.a_received[rank];
      }
      for (const std::size_t rank : to_ranks) {
        ++found.b;
        found.b_self += rank == home ? 1 : 0;
        found.b_intra += rank != home && domains[rank] == domains[home] ? 1 : 0;
        if (rank != home) ++found.d_sent[home], ++found.d_received[rank];
      }
      found.c += static_cast<std::int64_t>(to_domains.size());
      to_domains.erase(domains[home]);
      found.e += static_cast<std::int64_t>(to_domains.size());
    }
  }
  return found;
}

TEST(Traffic, random_traces_agree_with_sets) {
  for (std::uint64_t number = 0; number < 120; ++number) {
    SCOPED_TRACE(number);
    const int ep_size = 1 + static_cast<int>(number % 6),
              num_experts = 4 + static_cast<int>(number % 7);
    const bool replicas = number % 3 == 2 && ep_size > 1;
    const int redundant = replicas ? ep_size - num_experts % ep_size : 0;
    const Trace trace = random_trace(number, num_experts, 1 + static_cast<int>(number % 4), 23);
    const Placement placement = make_placement(replicas          ? "eplb"
                                               : number % 2 == 0 ? "contiguous"
                                                                 : "round_robin",
                                               {num_experts, ep_size, redundant});
    std::vector<TokenRange> ranges;
    std::int64_t begin = 0;
    for (const std::int64_t share : near_equal_split(23, ep_size)) {
      ranges.push_back({begin, begin + share});
      begin += share;
    }
    std::vector<int> domains;
    for (int rank = 0; rank < ep_size; ++rank) {
      domains.push_back(rank % (1 + static_cast<int>(number % 3)));
    }
    const GroupPlaces places = on_domains(domains);
    const SetCounts want = count_with_sets(trace, placement, ranges, domains);
    const LayerCounts counts = count_layer(trace, placement, ranges, 64, &places);
    const Traffic& traffic = counts.traffic;
    EXPECT_EQ(counts.rows_per_slot, rows_per_slot(placement, trace));
    EXPECT_EQ(traffic.a_copies, 23 * trace.top_k);
    EXPECT_EQ(traffic.a_self_copies, want.a_self);
    EXPECT_EQ(traffic.domains->a_intra_copies, want.a_intra);
    EXPECT_EQ(traffic.b_copies, want.b);
    EXPECT_EQ(traffic.b_self_copies, want.b_self);
    EXPECT_EQ(traffic.domains->b_intra_copies, want.b_intra);
    EXPECT_EQ(traffic.domains->c_copies, want.c);
    EXPECT_EQ(traffic.d_copies, want.b - want.b_self);
    EXPECT_EQ(traffic.domains->e_copies, want.e);
    EXPECT_EQ(traffic.max_remote_rows_sent, std::ranges::max(want.a_sent));
    EXPECT_EQ(traffic.max_remote_rows_received, std::ranges::max(want.a_received));
    EXPECT_EQ(traffic.max_d_copies_sent, std::ranges::max(want.d_sent));
    EXPECT_EQ(traffic.max_d_copies_received, std::ranges::max(want.d_received));
  }
}

}  // namespace
}  // namespace epsweep
