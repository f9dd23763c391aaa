#include "costs/exchange_fit.h"

namespace epsweep {

std::optional<ExchangeLine> fit_exchange(std::span<const ExchangeSample> samples) {
  // Sums with the weights 1 / seconds^2 that make errors relative.
  double weight = 0, weight_x = 0, weight_xx = 0, weight_t = 0, weight_xt = 0;
  for (const ExchangeSample& sample : samples) {
    if (!(sample.seconds > 0)) return std::nullopt;
    const double x = sample.remote_bytes, t = sample.seconds, w = 1 / (t * t);
    weight += w;
    weight_x += w * x;
    weight_xx += w * x * x;
    weight_t += w * t;
    weight_xt += w * x * t;
  }
  const double spread = weight * weight_xx - weight_x * weight_x;
  // What rounding leaves of a spread of zero.
  if (!(spread > 1e-9 * weight * weight_xx)) return std::nullopt;
  double alpha = (weight_t * weight_xx - weight_x * weight_xt) / spread;
  double slope = (weight * weight_xt - weight_x * weight_t) / spread;
  if (alpha < 0) {
    alpha = 0;
    slope = weight_xt / weight_xx;
  }
  if (!(slope > 0)) return std::nullopt;
  return ExchangeLine{.alpha_s = alpha, .beta_bytes_per_s = 1 / slope};
}

}  // namespace epsweep
