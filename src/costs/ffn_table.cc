#include "costs/ffn_table.h"

#include <algorithm>
#include <cmath>

namespace epsweep {
namespace {

// Sums of one M over the n it was measured at, weighted by 1 / t^2 so that errors are relative.
struct ColumnSums {
  double one = 0, n = 0, nn = 0, t = 0, nt = 0;
  int count = 0;
};

double lerp_at(double x, double x0, double y0, double x1, double y1) {
  return x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y0;
}

using Curve = std::map<double, double>;  // rows per slot -> seconds

// Inside of what was measured.
double seconds_at(const Curve& curve, double rows) {
  const auto above = curve.lower_bound(rows);
  const auto below = above->first > rows ? std::prev(above) : above;
  return lerp_at(rows, below->first, below->second, above->first, above->second);
}

// Every M of any curve, with all curves that were measured around it.
std::map<double, ColumnSums> columns_of(const std::map<std::int64_t, Curve>& curves) {
  std::map<double, ColumnSums> columns;
  for (const auto& [slots, curve] : curves) {
    for (const auto& [rows, seconds] : curve) columns[rows];
  }
  for (auto& [rows, sums] : columns) {
    for (const auto& [slots, curve] : curves) {
      if (rows < curve.begin()->first || rows > curve.rbegin()->first) continue;
      const double n = static_cast<double>(slots), t = seconds_at(curve, rows), w = 1 / (t * t);
      sums.one += w;
      sums.n += w * n;
      sums.nn += w * n * n;
      sums.t += w * t;
      sums.nt += w * n * t;
      ++sums.count;
    }
  }
  return columns;
}

// Of t = fixed + n * u(M) with a u of its own for every M: u eliminated, then least squares.
double fit_fixed(const std::map<double, ColumnSums>& columns) {
  double above = 0, below = 0, weight = 0;
  for (const auto& [rows, sums] : columns) {
    if (sums.count < 2) continue;
    above += sums.t - sums.n * sums.nt / sums.nn;
    below += sums.one - sums.n * sums.n / sums.nn;
    weight += sums.one;
  }
  return below > 1e-12 * weight ? std::max(0.0, above / below) : 0;
}

}  // namespace

FfnTable::FfnTable(std::span<const FfnSample> samples, const FfnFloor& floor) : floor_(floor) {
  for (const FfnSample& sample : samples) {
    if (sample.slots <= 0 || !(sample.rows_per_slot > 0) || !(sample.seconds > 0)) continue;
    curves_[sample.slots].emplace(sample.rows_per_slot, sample.seconds);
  }
  fixed_s_ = fit_fixed(columns_of(curves_));
  for (const auto& [slots, curve] : curves_) {
    for (const auto& [rows, seconds] : curve) fixed_s_ = std::min(fixed_s_, seconds);
  }
}

double FfnTable::floor_s(double rows) const {
  const double row_s = floor_.row_s > 0 ? floor_.row_s : 1;
  return std::max(floor_.row_s > 0 ? floor_.slot_s : 0.0, rows * row_s);
}

FfnTable::SlotTime FfnTable::on_curve(std::int64_t slots, const Curve& curve, double rows) const {
  const auto of_slot = [this, slots](double seconds) {
    return (seconds - fixed_s_) / static_cast<double>(slots);
  };
  const auto last = std::prev(curve.end());
  if (rows > last->first) {
    return {of_slot(last->second) * floor_s(rows) / floor_s(last->first), FfnBasis::more_rows,
            doublings_outside(rows, 0, last->first)};
  }
  if (rows < curve.begin()->first) {
    return {of_slot(curve.begin()->second), FfnBasis::fewer_rows, 0};
  }
  return {of_slot(seconds_at(curve, rows)), FfnBasis::interpolated, 0};
}

// From the curves that were measured around `rows`; where none was, from those that came closest.
FfnTable::SlotTime FfnTable::slot_s(std::int64_t slots, double rows) const {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const auto distance = [rows](const Curve& curve) {
    return doublings_outside(rows, curve.begin()->first, curve.rbegin()->first);
  };
  double closest = distance(curves_.begin()->second);
  for (const auto& [n, curve] : curves_) closest = std::min(closest, distance(curve));
  auto fewer = curves_.end(), more = curves_.end();
  for (auto at = curves_.begin(); at != curves_.end(); ++at) {
    if (distance(at->second) > closest) continue;
    if (at->first <= slots) fewer = at;
    if (at->first >= slots && more == curves_.end()) more = at;
  }
  if (fewer == curves_.end() || more == curves_.end()) {
    const auto& [n, curve] = fewer != curves_.end() ? *fewer : *more;
    SlotTime time = on_curve(n, curve, rows);
    time.basis = std::max(time.basis, FfnBasis::other_slots);
    time.doublings =
        std::max(time.doublings, doublings_outside(number(slots), number(n), number(n)));
    return time;
  }
  // t is linear in n between neighbours.
  const SlotTime low = on_curve(fewer->first, fewer->second, rows);
  const SlotTime high = on_curve(more->first, more->second, rows);
  const double n0 = number(fewer->first), n1 = number(more->first);
  const double all_s = lerp_at(number(slots), n0, low.seconds * n0, n1, high.seconds * n1);
  return {all_s / number(slots), std::max(low.basis, high.basis),
          std::max(low.doublings, high.doublings)};
}

std::optional<FfnForecast> FfnTable::forecast(std::span<const std::int64_t> rows_per_slot) const {
  if (empty()) return std::nullopt;
  const std::int64_t active =
      std::ranges::count_if(rows_per_slot, [](std::int64_t rows) { return rows > 0; });
  if (active == 0) return FfnForecast{};
  FfnForecast forecast;
  double seconds = fixed_s_, doublings = 0;
  std::map<std::int64_t, SlotTime> known;  // many slots have the same few counts
  for (const std::int64_t rows : rows_per_slot) {
    if (rows == 0) continue;
    const auto [found, is_new] = known.try_emplace(rows);
    if (is_new) found->second = slot_s(active, static_cast<double>(rows));
    seconds += found->second.seconds;
    forecast.basis = std::max(forecast.basis, found->second.basis);
    doublings = std::max(doublings, found->second.doublings);
  }
  forecast.time = forecast_of(seconds, doublings, kFfnError);
  return forecast;
}

}  // namespace epsweep
