#include "report/attribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "report/verdict.h"

namespace epsweep {
namespace {

// What two factors of a function do to it, each alone: the mean of both orders.
struct Shares {
  double first = 0, second = 0;
};
template <typename Function>
Shares shares_of(const Function& f, double first_a, double second_a, double first_b,
                 double second_b) {
  const double neither = f(first_a, second_a), both = f(first_b, second_b);
  const double only_first = f(first_b, second_a), only_second = f(first_a, second_b);
  return {.first = ((only_first - neither) + (both - only_second)) / 2,
          .second = ((only_second - neither) + (both - only_first)) / 2};
}

class TermSum {
 public:
  TermSum(const Breakdown& a, const Breakdown& b) : a_(a), b_(b) {}

  double change(LayerPart part) const { return b_.at(part) - a_.at(part); }
  void put(Cause cause, double us) { values_[static_cast<std::size_t>(cause)] += us; }

  void put_experts() {
    const BreakdownModel &a = a_.model, &b = b_.model;
    const double ffn = change(LayerPart::ffn_typical);
    if (!a.weight_us || !b.weight_us || !a.compute_us || !b.compute_us) {
      return put(Cause::expert_kernel, ffn);
    }
    const auto roof = [](double weights, double operations) {
      return std::max(weights, operations);
    };
    const Shares shares = shares_of(roof, *a.weight_us, *a.compute_us, *b.weight_us, *b.compute_us);
    put(Cause::weight_traffic, shares.first);
    put(Cause::expert_compute, shares.second);
    put(Cause::expert_kernel, ffn - shares.first - shares.second);
  }

  void put_skew() {
    const double floor = b_.model.skew_floor_us.value_or(0) - a_.model.skew_floor_us.value_or(0);
    put(Cause::skew_floor, floor);
    put(Cause::skew, change(LayerPart::ffn_rows) - floor);
  }

  // `first`: the alpha of that exchange; its other causes follow in order.
  void put_exchange(LayerPart part, Cause first) {
    const auto cause = [first](int offset) {
      return static_cast<Cause>(static_cast<int>(first) + offset);
    };
    const BreakdownModel &a = a_.model, &b = b_.model;
    double explained = 0;
    const auto explain = [&](int offset, double us) {
      put(cause(offset), us);
      explained += us;
    };
    if (a.alpha_us && b.alpha_us) explain(0, *b.alpha_us - *a.alpha_us);
    // EP1 has no line and moves nothing: its rows take no time at anybody's rate.
    const double row_a = a.row_us.value_or(0), row_b = b.row_us.value_or(0);
    if ((a.row_us || a.rows == 0) && (b.row_us || b.rows == 0)) {
      const auto product = [](double time, double dedup) { return time * dedup; };
      const Shares bytes =
          shares_of(product, row_a * a.mean_rows, a.dedup, row_b * b.mean_rows, b.dedup);
      explain(1, bytes.first);
      explain(2, bytes.second);
      explain(3,
              row_b * (b.rows - b.mean_rows) * b.dedup - row_a * (a.rows - a.mean_rows) * a.dedup);
      if (!a.alpha_us && b.alpha_us) explain(0, *b.alpha_us);
      if (a.alpha_us && !b.alpha_us) explain(0, -*a.alpha_us);
    }
    put(cause(4), change(part) - explained);
  }

  Terms finish() const { return {b_.period_us - a_.period_us, values_}; }

 private:
  const Breakdown &a_, &b_;
  Terms::Values values_{};
};

template <typename Value>
double median_over(std::span<const Breakdown> repeats, const Value& value) {
  std::vector<double> values;
  for (const Breakdown& repeat : repeats) values.push_back(value(repeat));
  return nearest_rank(values, 0.5);
}

Path path_by(const Breakdown& a, const Breakdown& b, const Breakdown& bridge, bool width_first) {
  const Terms first = terms_between(a, bridge), second = terms_between(bridge, b);
  return width_first ? Path{.concurrency = second, .width = first}
                     : Path{.concurrency = first, .width = second};
}

Path mean_of(const Path& a, const Path& b) {
  return {.concurrency = 0.5 * (a.concurrency + b.concurrency), .width = 0.5 * (a.width + b.width)};
}

// The central values, of one breakdown for each corner.
struct CornerBreakdowns {
  Breakdown a, b;
  std::optional<Breakdown> wide_low, narrow_high;
};

Attribution attribute_one(const CornerBreakdowns& corners, bool same_load) {
  Attribution result;
  result.total = terms_between(corners.a, corners.b);
  if (same_load) {
    result.effects = Path{.concurrency = Terms(), .width = result.total};
    return result;
  }
  if (corners.wide_low) {
    result.width_first = path_by(corners.a, corners.b, *corners.wide_low, true);
  }
  if (corners.narrow_high) {
    result.concurrency_first = path_by(corners.a, corners.b, *corners.narrow_high, false);
  }
  if (result.width_first && result.concurrency_first) {
    result.effects = mean_of(*result.width_first, *result.concurrency_first);
  } else if (result.width_first) {
    result.effects = result.width_first;
  } else {
    result.effects = result.concurrency_first;
  }
  return result;
}

std::optional<Breakdown> median_or_none(std::span<const Breakdown> repeats) {
  if (repeats.empty()) return std::nullopt;
  return median_breakdown(repeats);
}

std::optional<Breakdown> repeat_or_none(const std::vector<Breakdown>& repeats, std::size_t i) {
  if (i >= repeats.size()) return std::nullopt;
  return repeats[i];
}

void put_intervals(const Corners& corners, Attribution& result) {
  const std::size_t num_pairs = std::min(corners.a.size(), corners.b.size());
  if (num_pairs < 2) return;
  std::array<std::vector<double>, kNumCauses> samples;
  std::array<std::vector<double>, kCauseGroupNames.size()> groups;
  std::vector<double> concurrency, width;
  for (std::size_t i = 0; i < num_pairs; ++i) {
    const Attribution one = attribute_one({.a = corners.a[i],
                                           .b = corners.b[i],
                                           .wide_low = repeat_or_none(corners.wide_low, i),
                                           .narrow_high = repeat_or_none(corners.narrow_high, i)},
                                          corners.same_load);
    for (std::size_t c = 0; c < kNumCauses; ++c) samples[c].push_back(one.total.values()[c]);
    const GroupValues values = by_group(one.width_or_total());
    for (std::size_t g = 0; g < values.size(); ++g) groups[g].push_back(values[g]);
    if (!one.effects) continue;
    concurrency.push_back(one.effects->concurrency.measured_us());
    width.push_back(one.effects->width.measured_us());
  }
  std::array<Interval, kNumCauses>& intervals = result.total_intervals.emplace();
  for (std::size_t c = 0; c < kNumCauses; ++c) intervals[c] = *repeats_interval(samples[c]);
  auto& of_groups = result.group_intervals.emplace();
  for (std::size_t g = 0; g < groups.size(); ++g) of_groups[g] = *repeats_interval(groups[g]);
  if (concurrency.size() < 2) return;
  result.concurrency_interval = repeats_interval(concurrency);
  result.width_interval = repeats_interval(width);
}

}  // namespace

Terms::Terms(double measured_us, const Values& causes)
    : measured_us_(measured_us), causes_(causes) {
  double& residual = causes_[static_cast<std::size_t>(Cause::residual)];
  residual = 0;
  residual = measured_us - std::accumulate(causes_.begin(), causes_.end(), 0.0);
}

Terms operator+(const Terms& a, const Terms& b) {
  Terms::Values sum = a.causes_;
  for (std::size_t i = 0; i < kNumCauses; ++i) sum[i] += b.causes_[i];
  return {a.measured_us_ + b.measured_us_, sum};
}

Terms operator*(double factor, const Terms& terms) {
  Terms::Values scaled = terms.causes_;
  for (double& value : scaled) value *= factor;
  return {factor * terms.measured_us_, scaled};
}

Terms terms_between(const Breakdown& a, const Breakdown& b) {
  TermSum sum(a, b);
  sum.put_experts();
  sum.put_skew();
  sum.put_exchange(LayerPart::dispatch, Cause::dispatch_alpha);
  sum.put_exchange(LayerPart::combine, Cause::combine_alpha);
  sum.put(Cause::host, sum.change(LayerPart::uneven));
  for (const LayerPart part :
       {LayerPart::router, LayerPart::count_exchange, LayerPart::permute, LayerPart::unpermute}) {
    sum.put(Cause::overhead, sum.change(part));
  }
  return sum.finish();
}

Breakdown median_breakdown(std::span<const Breakdown> repeats) {
  EPS_EXPECT(!repeats.empty(), "a median of no breakdowns");
  Breakdown median = repeats.front();
  median.period_us = median_over(repeats, [](const Breakdown& b) { return b.period_us; });
  for (std::size_t part = 0; part < kNumParts; ++part) {
    median.parts_us[part] =
        median_over(repeats, [part](const Breakdown& b) { return b.parts_us[part]; });
  }
  double& residual = median.at(LayerPart::residual);
  residual = 0;
  residual =
      median.period_us - std::accumulate(median.parts_us.begin(), median.parts_us.end(), 0.0);
  return median;
}

Attribution attribute(const Corners& corners) {
  Attribution result = attribute_one({.a = median_breakdown(corners.a),
                                      .b = median_breakdown(corners.b),
                                      .wide_low = median_or_none(corners.wide_low),
                                      .narrow_high = median_or_none(corners.narrow_high)},
                                     corners.same_load);
  put_intervals(corners, result);
  return result;
}

std::array<double, kNumCauses> factors_of(const Terms& terms, double period_a_us,
                                          double period_b_us) {
  const double change = period_b_us - period_a_us;
  const double log_mean = std::abs(change) < 1e-12 * period_a_us
                              ? period_a_us
                              : change / std::log(period_b_us / period_a_us);
  std::array<double, kNumCauses> factors{};
  for (std::size_t i = 0; i < kNumCauses; ++i) factors[i] = std::exp(-terms.values()[i] / log_mean);
  return factors;
}

std::optional<CauseGroup> group_of(Cause cause) {
  switch (cause) {
    case Cause::weight_traffic:
      return CauseGroup::weight_traffic;
    case Cause::expert_compute:
    case Cause::expert_kernel:
      return CauseGroup::expert_compute;
    case Cause::skew:
    case Cause::skew_floor:
    case Cause::dispatch_skew:
    case Cause::combine_skew:
      return CauseGroup::skew;
    case Cause::dispatch_alpha:
    case Cause::dispatch_bytes:
    case Cause::dispatch_dedup:
    case Cause::dispatch_off_line:
    case Cause::combine_alpha:
    case Cause::combine_bytes:
    case Cause::combine_dedup:
    case Cause::combine_off_line:
      return CauseGroup::interconnect;
    case Cause::host:
      return CauseGroup::host;
    case Cause::overhead:
      return CauseGroup::overhead;
    case Cause::residual:
      break;
  }
  return std::nullopt;
}

GroupValues by_group(const Terms& terms) {
  GroupValues sums{};
  for (std::size_t i = 0; i < kNumCauses; ++i) {
    const auto group = group_of(static_cast<Cause>(i));
    if (group) sums[static_cast<std::size_t>(*group)] += terms.values()[i];
  }
  return sums;
}

bool is_told(double term_us, double residual_us, const std::optional<Interval>& interval) {
  const double half_width = interval ? (interval->high - interval->low) / 2 : 0;
  return std::abs(term_us) > std::abs(residual_us) && std::abs(term_us) > half_width;
}

}  // namespace epsweep
