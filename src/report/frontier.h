// Tokens per second and rank against tokens per second and user: one curve for each EP size, and
// how two of them compare where a user gets the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "report/verdict.h"

namespace epsweep {

// One load as one repeat measured it.
struct LoadTpot {
  std::int64_t tokens_global = 0;
  double tpot_s = 0;
};

// A repeat's loads, and the ones that its search ended between (series_end.h).
struct RepeatCurve {
  std::vector<LoadTpot> loads;  // ascending, none twice
  std::optional<std::int64_t> admitted;
  std::string stopped_by;  // a StopKind's name; empty where the records do not tell
};

struct FrontierCurve {
  int ep_size = 1;
  std::vector<RepeatCurve> repeats;
};

// A user gets 1 / TPOT; a rank, of a group of P, C / P / TPOT tokens per second.
double user_rate(const LoadTpot& load);
double rank_rate(const LoadTpot& load, int ep_size);

// From the slowest to the fastest token that the repeat measured; absent for none.
std::optional<Interval> user_range(const RepeatCurve& repeat);

// Tokens per second and rank where a user gets `user_rate`: linear between neighbouring loads,
// which is exact where TPOT = a + b * C, for then the rank's rate is (1 - a * user_rate) / (b * P).
// The most where several neighbours lie on both sides of it; absent outside of the measured range.
std::optional<double> rank_rate_at(const RepeatCurve& repeat, int ep_size, double user_rate);

// Median by nearest rank and where it lies by the repeats (verdict.h).
struct Estimate {
  double median = 0;
  Interval interval;
};
// At least one.
Estimate estimate_of(std::span<const double> of_repeats);

// What repeats say of one load.
struct FrontierLoad {
  std::int64_t tokens_global = 0;
  int num_repeats = 0;  // that measured it
  Estimate tpot_s, user_rate, rank_rate;
};
// Ascending.
std::vector<FrontierLoad> loads_of(const FrontierCurve& curve);

// Of curve b against curve a.
struct FrontierGain {
  int a_ep_size = 0, b_ep_size = 0;
  double user_rate = 0;
  std::string why_not;  // why there is no number; empty where there is, and then the rest holds
  Estimate a, b;        // tokens per second and rank
  double ratio = 1;     // b.median / a.median
  Interval interval;    // b.low / a.high to b.high / a.low
  Shown shown = Shown::too_few;  // faster: b gives more
  std::size_t a_repeats = 0, b_repeats = 0;
};
// Only where every repeat of both has measured on both sides of `user_rate`.
FrontierGain gain_at(const FrontierCurve& a, const FrontierCurve& b, double user_rate);

// At the objective, where there is one, and at both ends of what all repeats of both have measured.
std::vector<FrontierGain> gains_between(const FrontierCurve& a, const FrontierCurve& b,
                                        std::optional<double> objective_user_rate);

}  // namespace epsweep
