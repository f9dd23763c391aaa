#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sample_points.h"
#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {
namespace {

std::vector<int> divisors(int number) {
  std::vector<int> result;
  for (int d = 1; d <= number; ++d) {
    if (number % d == 0) result.push_back(d);
  }
  return result;
}

void expect_balanced(const Trace& trace, const std::string& what) {
  for (std::int64_t token = 0; token < trace.num_tokens; ++token) {
    const auto experts = trace.of_token(token);
    const std::set<std::int32_t> distinct(experts.begin(), experts.end());
    ASSERT_EQ(distinct.size(), experts.size()) << what << ", token " << token;
    ASSERT_GE(*distinct.begin(), 0) << what;
    ASSERT_LT(*distinct.rbegin(), trace.num_experts) << what;
  }
  const std::vector<std::int64_t> rows = rows_per_expert(trace);
  for (const int ep_size : divisors(trace.num_experts)) {
    const std::vector<std::int64_t> ranks =
        rows_per_rank(make_placement("contiguous", {trace.num_experts, ep_size}), rows);
    const auto [least, most] = std::minmax_element(ranks.begin(), ranks.end());
    ASSERT_LE(*most - *least, 1) << what << ", EP" << ep_size;
  }
}

TEST(Balanced, ranks_differ_by_at_most_one_at_every_width) {
  for (const int num_experts : {1, 2, 7, 8, 30, 64, 96, 256}) {
    for (const int top_k : {1, 2, 3, 6, 8, num_experts}) {
      if (top_k > num_experts) continue;
      for (const std::int64_t tokens : {1, 2, 3, 5, 7, 13, 16, 100, 257, 1000}) {
        SweepPoint point = sample_point("balanced", num_experts, top_k, tokens);
        point.seed = static_cast<std::uint64_t>(tokens);
        point.step = top_k;
        expect_balanced(draw_trace(point, num_experts % 5),
                        fmt::format("C={} k={} E={}", tokens, top_k, num_experts));
      }
    }
  }
}

TEST(Balanced, each_source_rank_sends_evenly) {
  for (const std::int64_t tokens : {64, 100, 257, 1000, 4096, 10'007}) {
    for (const int ep_size : {2, 8, 32}) {
      const SweepPoint point = sample_point("balanced", 256, 8, tokens, ep_size);
      const Trace trace = draw_trace(point, 0);
      const Placement placement = make_placement("contiguous", {256, ep_size});
      for (const TokenRange range : token_ranges(point)) {
        std::vector<std::int64_t> rows(static_cast<std::size_t>(ep_size), 0);
        for (std::int64_t token = range.begin; token < range.end; ++token) {
          for (const std::int32_t expert : trace.of_token(token)) {
            const int rank = placement.rank_of(expert, token);
            ++rows[static_cast<std::size_t>(rank)];
          }
        }
        const double mean = static_cast<double>(range.size()) * 8 / ep_size;
        for (const std::int64_t count : rows) {
          ASSERT_NEAR(static_cast<double>(count), mean, 4.0) << tokens << " tokens, EP" << ep_size;
        }
      }
    }
  }
}

TEST(Balanced, the_experts_with_one_row_more_change_with_the_layer) {
  const SweepPoint point = sample_point("balanced", 64, 8, 9);  // 72 rows for 64 experts
  std::set<std::vector<std::int64_t>> patterns;
  for (int layer = 0; layer < 8; ++layer) {
    patterns.insert(rows_per_expert(draw_trace(point, layer)));
  }
  EXPECT_GT(patterns.size(), 1U);
}

// Round-robin ranks hold every P-th expert: rows are even there too, and a token's rows go to as
// many ranks as under contiguous placement.
TEST(Balanced, round_robin_ranks_are_even_where_the_width_divides) {
  for (const int num_experts : {64, 128, 256}) {
    for (const std::int64_t tokens : {1, 2, 3, 7, 100, 250, 1024}) {
      for (const int ep_size : {2, 4, 8}) {
        const Trace trace = draw_trace(sample_point("balanced", num_experts, 8, tokens), 0);
        const Placement placement = make_placement("round_robin", {num_experts, ep_size});
        const std::vector<std::int64_t> ranks = rows_per_rank(placement, rows_per_expert(trace));
        for (const std::int64_t rows : ranks) ASSERT_EQ(rows, tokens * 8 / ep_size);
        for (std::int64_t token = 0; token < tokens; ++token) {
          std::set<int> destinations;
          for (const std::int32_t expert : trace.of_token(token)) {
            destinations.insert(expert % ep_size);
          }
          ASSERT_EQ(destinations.size(), static_cast<std::size_t>(ep_size));
        }
      }
    }
  }
}

}  // namespace
}  // namespace epsweep
