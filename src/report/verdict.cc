#include "report/verdict.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "report/text_table.h"

namespace epsweep {
namespace {

constexpr double kMostChance = 0.05;

double chance_of_no_overlap(std::size_t n, std::size_t m) {
  const auto a = static_cast<double>(n), b = static_cast<double>(m);
  return 2 * std::exp(std::lgamma(a + 1) + std::lgamma(b + 1) - std::lgamma(a + b + 1));
}

std::string interval_text(const Interval& interval) {
  if (interval.low == interval.high) return short_number(interval.low);
  return fmt::format("{}-{}", short_number(interval.low), short_number(interval.high));
}

std::string shown_text(const Difference& difference) {
  const double percent = std::abs(difference.ratio - 1) * 100;
  switch (difference.shown) {
    case Shown::nothing:
      return "no difference shown";
    case Shown::too_few:
      return "no difference shown, more repeats are needed";
    case Shown::faster:
      return fmt::format("{:.1f} % faster", percent);
    case Shown::slower:
      break;
  }
  return fmt::format("{:.1f} % slower", percent);
}

}  // namespace

std::optional<Interval> repeats_interval(std::span<const double> p50s) {
  if (p50s.empty()) return std::nullopt;
  if (const std::optional<Interval> interval = median_interval(p50s)) return interval;
  const auto [low, high] = std::ranges::minmax(p50s);
  return Interval{low, high};
}

Difference difference_between(std::span<const double> a_p50s, std::span<const double> b_p50s) {
  EPS_EXPECT(!a_p50s.empty() && !b_p50s.empty(), "a difference between points without times");
  Difference difference;
  difference.a = *repeats_interval(a_p50s);
  difference.b = *repeats_interval(b_p50s);
  difference.ratio = nearest_rank(b_p50s, 0.5) / nearest_rank(a_p50s, 0.5);
  if (difference.a.overlaps(difference.b)) {
    difference.shown = Shown::nothing;
  } else if (chance_of_no_overlap(a_p50s.size(), b_p50s.size()) > kMostChance) {
    difference.shown = Shown::too_few;
  } else {
    difference.shown = difference.b.high < difference.a.low ? Shown::faster : Shown::slower;
  }
  return difference;
}

std::string difference_text(const std::string& b_name, const std::string& a_name,
                            std::span<const double> a_p50s_us, std::span<const double> b_p50s_us) {
  const Difference difference = difference_between(a_p50s_us, b_p50s_us);
  return fmt::format("{} against {}: {} ({} against {} us, {} and {} repeats)", b_name, a_name,
                     shown_text(difference), interval_text(difference.b),
                     interval_text(difference.a), b_p50s_us.size(), a_p50s_us.size());
}

}  // namespace epsweep
