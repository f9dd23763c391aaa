// Order statistics. One definition of a percentile everywhere: nearest rank.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace epsweep {

// The value at sorted position ceil(p * n), p in (0, 1]; values need not be sorted, n >= 1.
double nearest_rank(std::span<const double> values, double p);

// Of a set of times. p90 needs 10 samples and p99 100; below that they are absent, never the
// maximum in disguise.
struct TimeSummary {
  std::int64_t num_samples = 0;
  std::optional<double> min, p50, p90, p99, max;
};
TimeSummary summarize_times(std::span<const double> values);

// Of a vector of row counts (rows per expert, or rows per rank).
//   max_over_mean = max / mean; absent where mean is 0.
//   empty_fraction = share of entries that are 0.
struct RowSummary {
  std::int64_t num_entries = 0;
  std::int64_t total = 0;
  double mean = 0;
  std::int64_t min = 0, p10 = 0, median = 0, p90 = 0, max = 0;
  std::optional<double> max_over_mean;
  double empty_fraction = 0;
};
RowSummary summarize_rows(std::span<const std::int64_t> rows);

}  // namespace epsweep
