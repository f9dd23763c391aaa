#include "workload/pair_capacity.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace epsweep {
namespace {

double mean_pair_rows(const SweepPoint& point) {
  const double ranks = point.ep_size;
  return static_cast<double>(point.tokens_global()) * point.model.top_k / (ranks * ranks);
}

}  // namespace

std::int64_t most_pair_rows(const Trace& trace, const Placement& placement,
                            const std::vector<TokenRange>& tokens_of_rank) {
  const SlotTable slots = placement.slot_table();
  std::vector<std::int64_t> rows(static_cast<std::size_t>(placement.ep_size));
  std::int64_t most = 0;
  for (const TokenRange& tokens : tokens_of_rank) {
    std::ranges::fill(rows, 0);
    for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
      const std::uint64_t hash = replica_hash(token);
      for (const std::int32_t expert : trace.of_token(token)) {
        const auto slot = static_cast<std::size_t>(slots.slot_of(expert, hash));
        ++rows[static_cast<std::size_t>(placement.rank_of_slot[slot])];
      }
    }
    if (!rows.empty()) most = std::max(most, std::ranges::max(rows));
  }
  return most;
}

std::int64_t pair_capacity(const SweepPoint& point, std::int64_t most_rows) {
  const std::int64_t rows =
      point.capacity_factor
          ? static_cast<std::int64_t>(std::ceil(*point.capacity_factor * mean_pair_rows(point)))
          : most_rows;
  return std::max<std::int64_t>(rows, 1);
}

std::optional<std::string> capacity_refusal(const SweepPoint& point, std::int64_t most_rows) {
  const std::int64_t capacity = pair_capacity(point, most_rows);
  if (most_rows > capacity) {
    return fmt::format(
        "capacity_factor {} gives every pair of ranks {} rows (mean {:.4g}), the fullest pair has "
        "{}: {} or more would do",
        *point.capacity_factor, capacity, mean_pair_rows(point), most_rows,
        std::ceil(100 * static_cast<double>(most_rows) / mean_pair_rows(point)) / 100);
  }
  if (capacity > INT32_MAX / point.ep_size) {
    return fmt::format("{} rows for each of {} ranks are more than 2^31-1 row positions", capacity,
                       point.ep_size);
  }
  return std::nullopt;
}

}  // namespace epsweep
