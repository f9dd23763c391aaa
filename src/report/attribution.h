// Why one EP size takes longer than another: differences of breakdowns that add up.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/statistics.h"
#include "report/breakdown.h"

namespace epsweep {

// What can make a layer slower or faster. Of an exchange: alpha, the bytes of the mean rank, copies
// that are lost to less deduplication, what the rank with most bytes has beyond the mean, and what
// its measured line does not explain (software, contention).
enum class Cause {
  weight_traffic,  // touched weights at the measured bandwidth
  expert_compute,  // routed rows at the measured rate
  expert_kernel,   // expert_ffn beyond its roofline; all of it where no rates are known
  skew,            // slowest rank's rows beyond the mean, above what chance does
  skew_floor,      // what uniform routing does to few rows
  dispatch_alpha,
  dispatch_bytes,
  dispatch_dedup,
  dispatch_skew,
  dispatch_off_line,
  combine_alpha,
  combine_bytes,
  combine_dedup,
  combine_skew,
  combine_off_line,
  host,      // ranks that are slow although rows do not explain it: host, clock, device
  overhead,  // router, permute, unpermute, count_exchange
  residual,
};
inline constexpr std::array<std::string_view, 18> kCauseNames = {
    "weight_traffic", "expert_compute", "expert_kernel",  "skew",          "skew_floor",
    "dispatch_alpha", "dispatch_bytes", "dispatch_dedup", "dispatch_skew", "dispatch_off_line",
    "combine_alpha",  "combine_bytes",  "combine_dedup",  "combine_skew",  "combine_off_line",
    "host",           "overhead",       "residual"};
inline constexpr std::size_t kNumCauses = kCauseNames.size();

// A measured difference and its causes, microseconds per layer: they add up by construction, since
// the residual is what the others leave.
class Terms {
 public:
  using Values = std::array<double, kNumCauses>;

  Terms() = default;
  // `causes`: its residual is not looked at.
  Terms(double measured_us, const Values& causes);

  double measured_us() const { return measured_us_; }
  double at(Cause cause) const { return causes_[static_cast<std::size_t>(cause)]; }
  double residual() const { return at(Cause::residual); }
  const Values& values() const { return causes_; }

  friend Terms operator+(const Terms& a, const Terms& b);
  friend Terms operator*(double factor, const Terms& terms);

 private:
  double measured_us_ = 0;
  Values causes_{};
};

// From a to b. Where two causes act on one part together (weights and operations on a roofline that
// is the larger of them; rows and copies per row on bytes) each gets the mean of what it does
// before and after the other (Shapley 1953). What one of the two breakdowns does not know is not
// split off.
Terms terms_between(const Breakdown& a, const Breakdown& b);

// Part by part the median over repeats, with the residual that is left of the median period.
Breakdown median_breakdown(std::span<const Breakdown> repeats);

// What is said about the causes: the largest of each sign, by the groups of causes that readers ask
// for.
enum class CauseGroup { weight_traffic, expert_compute, skew, interconnect, host, overhead };
inline constexpr std::array<std::string_view, 6> kCauseGroupNames = {
    "weight traffic", "expert compute", "skew", "interconnect", "slow hosts", "fixed overhead"};
// Absent for the residual.
std::optional<CauseGroup> group_of(Cause cause);
using GroupValues = std::array<double, kCauseGroupNames.size()>;
GroupValues by_group(const Terms& terms);

// The four measurements of a pair (P_a, C_a) -> (P_b, C_b). Each holds its repeats in order.
struct Corners {
  std::vector<Breakdown> a, b;
  std::vector<Breakdown> wide_low;     // (P_b, C_a); empty where it was not measured
  std::vector<Breakdown> narrow_high;  // (P_a, C_b); the same
  bool same_load = false;              // C_a = C_b: there is no concurrency effect
};

// One way from a to b, in two steps.
struct Path {
  Terms concurrency, width;
};

struct Attribution {
  Terms total;                            // b - a
  std::optional<Path> width_first;        // by (P_b, C_a)
  std::optional<Path> concurrency_first;  // by (P_a, C_b)
  // Mean of the paths there are. Absent with neither: width and concurrency are not told apart.
  std::optional<Path> effects;
  // Of repeats taken in pairs: repeat i of b against repeat i of a, which ran close to each other.
  // Absent with fewer than two.
  std::optional<std::array<Interval, kNumCauses>> total_intervals;
  std::optional<Interval> concurrency_interval, width_interval;
  // Of the width effect; of the total where there are no effects.
  std::optional<std::array<Interval, kCauseGroupNames.size()>> group_intervals;

  const Terms& width_or_total() const { return effects ? effects->width : total; }
};

// a and b must not be empty.
Attribution attribute(const Corners& corners);

// The factors on tokens/s per rank that each cause stands for: exp(-term / L) with L the
// logarithmic mean of the periods of a and b, so that their product is period_a / period_b exactly.
std::array<double, kNumCauses> factors_of(const Terms& terms, double period_a_us,
                                          double period_b_us);

// Whether a term may be named: it exceeds the residual, and half its interval where there is one.
bool is_told(double term_us, double residual_us, const std::optional<Interval>& interval);

}  // namespace epsweep
