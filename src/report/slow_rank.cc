#include "report/slow_rank.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/statistics.h"

namespace epsweep {
namespace {

constexpr double kSlow = 1.2, kAsManyRows = 1.05;

}  // namespace

std::vector<SlowRank> slow_ranks(std::span<const double> ffn_p50_s,
                                 std::span<const std::int64_t> routed_rows) {
  EPS_EXPECT(ffn_p50_s.size() == routed_rows.size(), "ranks with times but without rows");
  std::vector<SlowRank> slow;
  if (ffn_p50_s.size() < 3) return slow;  // of two, neither is the usual one
  const std::vector<double> rows(routed_rows.begin(), routed_rows.end());
  const double median_s = nearest_rank(ffn_p50_s, 0.5), median_rows = nearest_rank(rows, 0.5);
  if (median_s <= 0 || median_rows <= 0) return slow;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SlowRank rank{.row = static_cast<int>(i),
                        .time_over_median = ffn_p50_s[i] / median_s,
                        .rows_over_median = rows[i] / median_rows};
    if (rank.time_over_median > kSlow && rank.rows_over_median <= kAsManyRows) {
      slow.push_back(rank);
    }
  }
  return slow;
}

std::string slow_rank_text(const SlowRank& rank, int world_rank) {
  return fmt::format(
      "rank {}: expert_ffn takes {:.2f} times the median rank's with {:.2f} times its rows: its "
      "host or device is slow, not the routing",
      world_rank, rank.time_over_median, rank.rows_over_median);
}

}  // namespace epsweep
