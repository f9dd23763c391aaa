#include "base/clock_map.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace epsweep {

double ClockMap::bound_at_s(double own_s) const {
  const double outside_s = std::max({from_s - own_s, own_s - to_s, 0.0});
  const bool same_clock = bound_s == 0 && slope == 0;
  if (same_clock || outside_s == 0) return bound_s;
  return bound_s + (std::abs(slope) + kMaxDriftPpm * 1e-6) * outside_s;
}

std::optional<double> ClockMap::drift_ppm() const {
  return slope_bound ? std::optional(slope * 1e6) : std::nullopt;
}

std::optional<double> ClockMap::drift_bound_ppm() const {
  return slope_bound ? std::optional(*slope_bound * 1e6) : std::nullopt;
}

ClockMap clock_map(const ClockAlignment& only) {
  return {.from_s = only.own_s,
          .to_s = only.own_s,
          .offset_s = only.offset_s,
          .slope = 0,
          .bound_s = only.bound_s,
          .slope_bound = std::nullopt};
}

ClockMap clock_map(const ClockAlignment& before, const ClockAlignment& after) {
  const double length_s = after.own_s - before.own_s;
  EPS_EXPECT(length_s > 0, "clock alignments out of order");
  constexpr double kMaxSlope = kMaxDriftPpm * 1e-6;
  const double seen = (after.offset_s - before.offset_s) / length_s;
  const double slope = std::clamp(seen, -kMaxSlope, kMaxSlope);
  return {.from_s = before.own_s,
          .to_s = after.own_s,
          .offset_s = before.offset_s + (seen - slope) * length_s / 2,
          .slope = slope,
          .bound_s = std::max(before.bound_s, after.bound_s),
          .slope_bound = (before.bound_s + after.bound_s) / length_s};
}

}  // namespace epsweep
