#include "costs/stage_costs.h"

#include <limits>

namespace epsweep {

double at_bound(const TimeForecast& forecast, Bound bound) {
  if (bound == Bound::low) return forecast.low_s;
  return bound == Bound::high ? forecast.high_s : forecast.seconds;
}

std::optional<StageLine> fit_stage(std::span<const ExchangeSample> samples) {
  if (samples.empty()) return std::nullopt;
  if (const auto line = fit_exchange(samples)) return line;
  double sum = 0;
  for (const ExchangeSample& sample : samples) sum += sample.seconds;
  return StageLine{.alpha_s = sum / static_cast<double>(samples.size()),
                   .beta_bytes_per_s = std::numeric_limits<double>::infinity()};
}

}  // namespace epsweep
