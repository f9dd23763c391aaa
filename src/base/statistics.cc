#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"

namespace epsweep {
namespace {

std::size_t nearest_rank_index(std::size_t num_values, double p) {
  EPS_EXPECT(num_values > 0, "percentile of nothing");
  EPS_EXPECT(p > 0 && p <= 1, "percentile outside (0, 1]");
  const auto position = static_cast<std::size_t>(std::ceil(p * static_cast<double>(num_values)));
  return std::max<std::size_t>(position, 1) - 1;
}

// Largest j with 2 * P(Binomial(n, 1/2) < j) <= 0.05; 0 where there is none. By logarithms, as
// the terms of a large n underflow.
std::size_t median_order(std::size_t n) {
  const auto count = static_cast<double>(n);
  double below = 0;
  std::size_t j = 0;
  for (; j < n; ++j) {
    const auto k = static_cast<double>(j);
    below += std::exp(std::lgamma(count + 1) - std::lgamma(k + 1) - std::lgamma(count - k + 1) -
                      count * std::numbers::ln2);
    if (2 * below > 0.05) break;
  }
  return j;
}

}  // namespace

std::optional<Interval> median_interval(std::span<const double> values) {
  const std::size_t order = median_order(values.size());
  if (order == 0) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return Interval{sorted[order - 1], sorted[sorted.size() - order]};
}

double nearest_rank(std::span<const double> values, double p) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[nearest_rank_index(sorted.size(), p)];
}

TimeSummary summarize_times(std::span<const double> values) {
  TimeSummary summary;
  summary.num_samples = static_cast<std::int64_t>(values.size());
  if (values.empty()) return summary;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&sorted](double p) { return sorted[nearest_rank_index(sorted.size(), p)]; };
  summary.min = sorted.front();
  summary.max = sorted.back();
  summary.p50 = at(0.5);
  summary.p50_interval = median_interval(sorted);
  if (sorted.size() >= 10) summary.p90 = at(0.9);
  if (sorted.size() >= 20) summary.p95 = at(0.95);
  if (sorted.size() >= 100) summary.p99 = at(0.99);
  return summary;
}

RowSummary summarize_rows(std::span<const std::int64_t> rows) {
  RowSummary summary;
  summary.num_entries = static_cast<std::int64_t>(rows.size());
  if (rows.empty()) return summary;
  std::vector<std::int64_t> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&sorted](double p) { return sorted[nearest_rank_index(sorted.size(), p)]; };
  summary.total = std::accumulate(sorted.begin(), sorted.end(), std::int64_t{0});
  summary.mean = static_cast<double>(summary.total) / static_cast<double>(sorted.size());
  summary.min = sorted.front();
  summary.p10 = at(0.1);
  summary.median = at(0.5);
  summary.p90 = at(0.9);
  summary.max = sorted.back();
  if (summary.total > 0) summary.max_over_mean = static_cast<double>(summary.max) / summary.mean;
  const auto num_empty = std::upper_bound(sorted.begin(), sorted.end(), 0) - sorted.begin();
  summary.empty_fraction = static_cast<double>(num_empty) / static_cast<double>(sorted.size());
  return summary;
}

}  // namespace epsweep
