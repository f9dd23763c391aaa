#include "workload/recordings/counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace epsweep {
namespace {

// Sums of that many stay exact enough in doubles; anything larger is not a count.
constexpr double kMaxCount = 1e15;
// Published recordings differ by up to 0.05 % from layer to layer; more than this is another thing.
constexpr double kSuspiciousDifference = 0.01;
constexpr std::size_t kMaxListed = 8;

std::string layer_list(std::vector<std::int64_t> layers) {
  const std::size_t num_layers = layers.size();
  layers.resize(std::min(num_layers, kMaxListed));
  std::string text = fmt::format("{}", fmt::join(layers, ", "));
  if (num_layers > kMaxListed) text += fmt::format(" and {} more", num_layers - kMaxListed);
  return text;
}

double total_of(const CountsRow& row) {
  return std::accumulate(row.counts.begin(), row.counts.end(), 0.0);
}

// Every token of a recording passes every layer, so all have the same total.
void compare_totals(const std::vector<CountsRow>& rows, std::vector<RoutingNote>& notes) {
  if (rows.empty()) return;
  std::vector<double> totals;
  for (const CountsRow& row : rows) totals.push_back(total_of(row));
  std::vector<double> sorted = totals;
  std::ranges::sort(sorted);
  const double median = sorted[sorted.size() / 2];
  const double difference = (sorted.back() - sorted.front()) / sorted.back();
  if (difference == 0) return;
  std::vector<std::int64_t> far;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::fabs(totals[i] / median - 1) > kSuspiciousDifference) far.push_back(rows[i].layer);
  }
  if (difference <= kSuspiciousDifference || far.empty()) {
    notes.push_back({RoutingNote::Kind::note,
                     fmt::format("totals of the recorded layers differ by {:.3g} %, {} to {}",
                                 difference * 100, sorted.front(), sorted.back())});
    return;
  }
  notes.push_back(
      {RoutingNote::Kind::warning,
       fmt::format("totals of the recorded layers differ by {:.3g} %, {} to {}: recorded layers {} "
                   "are more than {:g} % from the median, so they did not count the same tokens",
                   difference * 100, sorted.front(), sorted.back(), layer_list(far),
                   kSuspiciousDifference * 100)});
}

}  // namespace

std::string count_problem(double count) {
  if (std::isnan(count)) return "is not a number";
  if (count < 0) return "is negative";
  return count > kMaxCount ? "is too large for a count" : "";
}

RecordedCounts counts_of_rows(std::vector<CountsRow> rows) {
  RecordedCounts counts;
  if (!rows.empty()) counts.num_experts = rows.front().counts.size();
  const auto dense = std::stable_partition(rows.begin(), rows.end(), [](const CountsRow& row) {
    return std::ranges::any_of(row.counts, [](double count) { return count != 0; });
  });
  if (dense != rows.end()) {
    std::vector<std::int64_t> layers;
    for (auto row = dense; row != rows.end(); ++row) layers.push_back(row->layer);
    counts.notes.push_back({RoutingNote::Kind::note,
                            fmt::format("{} recorded layers of all zeros left out as dense: {}",
                                        rows.end() - dense, layer_list(layers))});
    rows.erase(dense, rows.end());
  }
  compare_totals(rows, counts.notes);
  for (CountsRow& row : rows) counts.layers.push_back(std::move(row.counts));
  return counts;
}

}  // namespace epsweep
