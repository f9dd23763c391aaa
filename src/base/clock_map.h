// From a rank's own clock to the common axis, which is the clock of rank 0. Seconds.
#pragma once

#include <optional>

namespace epsweep {

// One estimate of how far a rank's clock is from the common axis.
struct ClockAlignment {
  double own_s = 0;     // when, on the rank's own clock
  double offset_s = 0;  // common - own at that time
  double bound_s = 0;   // the true offset is at most this far from it; 0: the same clock
};

// How fast two clocks may part; bounds rely on it. It is the most by which a Linux kernel's
// discipline (NTP) changes the rate of a clock; undisciplined ones differ by tens of ppm.
inline constexpr double kMaxDriftPpm = 500;

// A line: common = own + offset_s + slope * (own - from_s). The default is the identity, which is
// exact for ranks that read rank 0's clock.
struct ClockMap {
  double from_s = 0, to_s = 0;  // the interval on the own clock that was measured at both ends
  double offset_s = 0;          // at from_s
  double slope = 0;             // change of the offset per second of the own clock
  double bound_s = 0;           // of common_s(), anywhere in the interval
  // Half width of what the slope may be instead; absent where only one end was measured.
  std::optional<double> slope_bound;

  double common_s(double own_s) const { return own_s + offset_s + slope * (own_s - from_s); }
  // What common_s(own_s) may be wrong by, outside of the interval too.
  double bound_at_s(double own_s) const;
  std::optional<double> drift_ppm() const;
  std::optional<double> drift_bound_ppm() const;
};

// No drift known: flat, exact to the alignment's bound at its own time only.
ClockMap clock_map(const ClockAlignment& only);

// Interpolates between two alignments, the earlier one first; else RunError. If the drift between
// them is constant, the error at a share w of the way is (1 - w) * error_before + w * error_after,
// so at most the larger of the two bounds. A drift that changes in between adds to that unseen.
// A slope beyond kMaxDriftPpm comes from errors over a short time and would stretch every duration:
// the line is then turned around its middle to that slope. Errors stay between those of the two
// ends, so the bound still holds.
ClockMap clock_map(const ClockAlignment& before, const ClockAlignment& after);

}  // namespace epsweep
