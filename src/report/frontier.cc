#include "report/frontier.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "report/text_table.h"

namespace epsweep {
namespace {

// What all repeats of the curve have measured; absent where a repeat has nothing, or they have
// nothing in common.
std::optional<Interval> common_range(const FrontierCurve& curve) {
  std::optional<Interval> common;
  for (const RepeatCurve& repeat : curve.repeats) {
    const std::optional<Interval> range = user_range(repeat);
    if (!range) return std::nullopt;
    common = common
                 ? Interval{std::max(common->low, range->low), std::min(common->high, range->high)}
                 : *range;
  }
  if (!common || common->low > common->high) return std::nullopt;
  return common;
}

// ", beyond which kv_memory stops it", where that is why slower tokens were not measured.
std::string memory_text(const FrontierCurve& curve) {
  const std::string& kind = curve.repeats.front().stopped_by;
  if (kind != "kv_memory" && kind != "device_memory") return "";
  const bool all_alike = std::ranges::all_of(
      curve.repeats, [&kind](const RepeatCurve& repeat) { return repeat.stopped_by == kind; });
  return all_alike ? fmt::format(", beyond which {} stops it", kind) : "";
}

// Empty where the curve has a value at `user_rate` in all repeats.
std::string why_not_at(const FrontierCurve& curve, double user_rate) {
  const std::optional<Interval> range = common_range(curve);
  if (!range) return fmt::format("EP{} has no range that all its repeats measured", curve.ep_size);
  if (range->low <= user_rate && user_rate <= range->high) return "";
  return fmt::format("EP{} was measured from {} to {} tokens/s/user{}", curve.ep_size,
                     short_number(range->low), short_number(range->high),
                     user_rate < range->low ? memory_text(curve) : "");
}

std::vector<double> rank_rates_at(const FrontierCurve& curve, double user_rate) {
  std::vector<double> rates;
  for (const RepeatCurve& repeat : curve.repeats) {
    if (const auto rate = rank_rate_at(repeat, curve.ep_size, user_rate)) rates.push_back(*rate);
  }
  return rates;
}

// Rates are better the higher, times the lower.
Shown shown_of_rates(std::span<const double> a, std::span<const double> b) {
  const Shown of_times = difference_between(a, b).shown;
  if (of_times == Shown::faster) return Shown::slower;
  return of_times == Shown::slower ? Shown::faster : of_times;
}

}  // namespace

double user_rate(const LoadTpot& load) {
  return 1 / load.tpot_s;
}

double rank_rate(const LoadTpot& load, int ep_size) {
  return static_cast<double>(load.tokens_global) / ep_size / load.tpot_s;
}

std::optional<Interval> user_range(const RepeatCurve& repeat) {
  if (repeat.loads.empty()) return std::nullopt;
  const auto [fastest, slowest] = std::ranges::minmax(repeat.loads, {}, &LoadTpot::tpot_s);
  return Interval{user_rate(slowest), user_rate(fastest)};
}

std::optional<double> rank_rate_at(const RepeatCurve& repeat, int ep_size, double rate) {
  std::optional<double> best;
  const auto offer = [&best](double value) { best = std::max(best.value_or(value), value); };
  for (std::size_t i = 0; i < repeat.loads.size(); ++i) {
    const LoadTpot& here = repeat.loads[i];
    if (user_rate(here) == rate) offer(rank_rate(here, ep_size));
    if (i + 1 == repeat.loads.size()) break;
    const LoadTpot& next = repeat.loads[i + 1];
    const double from = user_rate(here), to = user_rate(next);
    if (from == to || (rate < from) == (rate < to)) continue;
    const double share = (rate - from) / (to - from);
    offer(rank_rate(here, ep_size) + share * (rank_rate(next, ep_size) - rank_rate(here, ep_size)));
  }
  return best;
}

Estimate estimate_of(std::span<const double> of_repeats) {
  EPS_EXPECT(!of_repeats.empty(), "an estimate from no repeats");
  return {.median = nearest_rank(of_repeats, 0.5), .interval = *repeats_interval(of_repeats)};
}

std::vector<FrontierLoad> loads_of(const FrontierCurve& curve) {
  std::map<std::int64_t, std::vector<double>> tpots;
  for (const RepeatCurve& repeat : curve.repeats) {
    for (const LoadTpot& load : repeat.loads) tpots[load.tokens_global].push_back(load.tpot_s);
  }
  std::vector<FrontierLoad> loads;
  for (const auto& [tokens, tpot_s] : tpots) {
    FrontierLoad& load = loads.emplace_back();
    load.tokens_global = tokens;
    load.num_repeats = static_cast<int>(tpot_s.size());
    load.tpot_s = estimate_of(tpot_s);
    // Both rates are a constant of the load over TPOT.
    const double per_rank = static_cast<double>(tokens) / curve.ep_size;
    const auto [low, high] = load.tpot_s.interval;
    load.user_rate = {1 / load.tpot_s.median, {1 / high, 1 / low}};
    load.rank_rate = {per_rank / load.tpot_s.median, {per_rank / high, per_rank / low}};
  }
  return loads;
}

FrontierGain gain_at(const FrontierCurve& a, const FrontierCurve& b, double rate) {
  FrontierGain gain;
  gain.a_ep_size = a.ep_size;
  gain.b_ep_size = b.ep_size;
  gain.user_rate = rate;
  for (const FrontierCurve* curve : {&a, &b}) {
    const std::string why_not = why_not_at(*curve, rate);
    if (why_not.empty()) continue;
    gain.why_not += (gain.why_not.empty() ? "" : "; ") + why_not;
  }
  if (!gain.why_not.empty()) return gain;
  const std::vector<double> of_a = rank_rates_at(a, rate), of_b = rank_rates_at(b, rate);
  gain.a_repeats = of_a.size();
  gain.b_repeats = of_b.size();
  gain.a = estimate_of(of_a);
  gain.b = estimate_of(of_b);
  gain.ratio = gain.b.median / gain.a.median;
  gain.interval = {gain.b.interval.low / gain.a.interval.high,
                   gain.b.interval.high / gain.a.interval.low};
  gain.shown = shown_of_rates(of_a, of_b);
  return gain;
}

std::vector<FrontierGain> gains_between(const FrontierCurve& a, const FrontierCurve& b,
                                        std::optional<double> objective_user_rate) {
  std::vector<FrontierGain> gains;
  if (objective_user_rate) gains.push_back(gain_at(a, b, *objective_user_rate));
  const std::optional<Interval> of_a = common_range(a), of_b = common_range(b);
  if (!of_a || !of_b || !of_a->overlaps(*of_b)) {
    if (gains.empty()) {
      // Says of one that it is outside of the other.
      const double anywhere = of_a ? of_a->low : of_b ? of_b->low : 0;
      gains.push_back(gain_at(a, b, anywhere));
    }
    return gains;
  }
  const double low = std::max(of_a->low, of_b->low), high = std::min(of_a->high, of_b->high);
  if (low != objective_user_rate) gains.push_back(gain_at(a, b, low));
  if (high != low && high != objective_user_rate) gains.push_back(gain_at(a, b, high));
  return gains;
}

}  // namespace epsweep
