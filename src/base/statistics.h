// Order statistics. One definition of a percentile everywhere: nearest rank.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace epsweep {

// The value at sorted position ceil(p * n), p in (0, 1]; values need not be sorted, n >= 1.
double nearest_rank(std::span<const double> values, double p);

struct Interval {
  double low = 0, high = 0;

  bool overlaps(const Interval& other) const { return low <= other.high && other.low <= high; }
};

// Two order statistics that hold the median of what the values are drawn from with at least 95 %
// confidence, whatever its distribution: the largest j with 2 * P(Binomial(n, 1/2) < j) <= 0.05
// gives [x_(j), x_(n+1-j)]. Absent below 6 values, of which no two do. (Hahn & Meeker, Statistical
// Intervals, section 5.2.)
std::optional<Interval> median_interval(std::span<const double> values);

// Of a set of times. p90 needs 10 samples, p95 20 and p99 100; below that they are absent, never
// the maximum in disguise.
struct TimeSummary {
  std::int64_t num_samples = 0;
  std::optional<double> min, p50, p90, p95, p99, max;
  std::optional<Interval> p50_interval;
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
