// Which of several measured kernels is taken, and for which rows it was.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "device/grouped_gemm.h"

namespace epsweep {

// Times that differ by less are not told apart.
inline constexpr double kChoiceNoise = 0.02;

// Of the candidates whose time is within kChoiceNoise of the shortest: those with the fewest calls,
// of these the fastest, of these the first. Absent if none was measured.
inline std::optional<std::size_t> best_candidate(
    std::span<const GemmChoice::Candidate> candidates) {
  double shortest_us = std::numeric_limits<double>::infinity();
  for (const GemmChoice::Candidate& candidate : candidates) {
    if (candidate.us) shortest_us = std::min(shortest_us, *candidate.us);
  }
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const GemmChoice::Candidate& candidate = candidates[i];
    if (!candidate.us || *candidate.us > shortest_us * (1 + kChoiceNoise)) continue;
    const auto is_better = [&candidate](const GemmChoice::Candidate& than) {
      if (candidate.kernel_calls != than.kernel_calls) {
        return candidate.kernel_calls < than.kernel_calls;
      }
      return *candidate.us < *than.us;
    };
    if (!best || is_better(candidates[*best])) best = i;
  }
  return best;
}

inline std::int64_t total_rows(std::span<const std::int64_t> rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

// Lets run() look row counts up without copying them.
struct RowsLess {
  using is_transparent = void;
  bool operator()(std::span<const std::int64_t> a, std::span<const std::int64_t> b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }
};

}  // namespace epsweep
