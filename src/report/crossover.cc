#include "report/crossover.h"

#include <algorithm>
#include <cmath>

namespace epsweep {
namespace {

bool is_shown(const LoadVerdict& load) {
  return load.shown == Shown::faster || load.shown == Shown::slower;
}

// Of loads whose first and last are on different sides.
std::optional<double> equal_at(std::span<const LoadVerdict> loads) {
  std::optional<double> tokens;
  for (std::size_t i = 0; i + 1 < loads.size(); ++i) {
    const double low = std::log(loads[i].ratio), high = std::log(loads[i + 1].ratio);
    if ((low < 0) == (high < 0)) continue;
    if (tokens) return std::nullopt;
    const double log_low = std::log(static_cast<double>(loads[i].tokens));
    const double log_high = std::log(static_cast<double>(loads[i + 1].tokens));
    tokens = std::exp(log_low + (log_high - log_low) * low / (low - high));
  }
  return tokens;
}

}  // namespace

std::vector<Crossing> crossings(std::vector<LoadVerdict> loads) {
  std::ranges::sort(loads, {}, &LoadVerdict::tokens);
  std::vector<Crossing> found;
  std::size_t last = loads.size();  // the last load at which anything was shown
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (!is_shown(loads[i])) continue;
    if (last < loads.size() && loads[last].shown != loads[i].shown) {
      found.push_back({.kind = loads[i].shown == Shown::faster ? CrossingKind::starts_to_win
                                                               : CrossingKind::stops_winning,
                       .after = loads[last].tokens,
                       .by = loads[i].tokens,
                       .estimate = equal_at(std::span(loads).subspan(last, i - last + 1))});
    }
    last = i;
  }
  return found;
}

}  // namespace epsweep
