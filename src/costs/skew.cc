#include "costs/skew.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "base/error.h"

namespace epsweep {
namespace {

using Coefficients = std::array<double, 8>;

// Horner's rule; coefficients from the constant on.
double polynomial(const Coefficients& coefficients, double x) {
  double value = 0;
  for (std::size_t i = coefficients.size(); i-- > 0;) value = value * x + coefficients[i];
  return value;
}

// AS 241: numerators and denominators near the middle, in the flanks and in the far tails.
constexpr Coefficients kMiddleTop = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                     1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                     4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                     3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr Coefficients kMiddleBottom = {1.0,
                                        4.2313330701600911252e+1,
                                        6.8718700749205790830e+2,
                                        5.3941960214247511077e+3,
                                        2.1213794301586595867e+4,
                                        3.9307895800092710610e+4,
                                        2.8729085735721942674e+4,
                                        5.2264952788528545610e+3};
constexpr Coefficients kFlankTop = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                    5.76949722146069140550e0,  3.64784832476320460504e0,
                                    1.27045825245236838258e0,  2.41780725177450611770e-1,
                                    2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr Coefficients kFlankBottom = {1.0,
                                       2.05319162663775882187e0,
                                       1.67638483018380384940e0,
                                       6.89767334985100004550e-1,
                                       1.48103976427480074590e-1,
                                       1.51986665636164571966e-2,
                                       5.47593808499534494600e-4,
                                       1.05075007164441684324e-9};
constexpr Coefficients kTailTop = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                   1.78482653991729133580e0,  2.96560571828504891230e-1,
                                   2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                   2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr Coefficients kTailBottom = {1.0,
                                      5.99832206555887937690e-1,
                                      1.36929880922735805310e-1,
                                      1.48753612908506148525e-2,
                                      7.86869131145613259100e-4,
                                      1.84631831751005468180e-5,
                                      1.42151175831644588870e-7,
                                      2.04426310338993978564e-15};

}  // namespace

double normal_quantile(double p) {
  EPS_EXPECT(p > 0 && p < 1, "quantile of a probability outside 0 to 1");
  const double from_middle = p - 0.5;
  if (std::abs(from_middle) <= 0.425) {
    const double r = 0.180625 - from_middle * from_middle;
    return from_middle * polynomial(kMiddleTop, r) / polynomial(kMiddleBottom, r);
  }
  const double r = std::sqrt(-std::log(std::min(p, 1 - p)));
  const double size = r <= 5 ? polynomial(kFlankTop, r - 1.6) / polynomial(kFlankBottom, r - 1.6)
                             : polynomial(kTailTop, r - 5) / polynomial(kTailBottom, r - 5);
  return std::copysign(size, from_middle);
}

std::optional<double> uniform_skew_floor(const UniformRouting& routing) {
  EPS_EXPECT(routing.ep_size >= 1 && routing.top_k <= routing.num_experts,
             "no ranks, or more picks than experts");
  const double rows = static_cast<double>(routing.num_tokens) * routing.top_k;
  if (rows == 0) return std::nullopt;
  if (routing.ep_size == 1 || routing.top_k == routing.num_experts) return 1.0;
  const double share = 1.0 / routing.ep_size;
  const double variance = rows * share * (1 - share) * (routing.num_experts - routing.top_k) /
                          (routing.num_experts - 1);
  const double z = normal_quantile((routing.ep_size - 0.375) / (routing.ep_size + 0.25));
  return 1 + z * std::sqrt(variance) / (rows * share);
}

std::optional<double> skew_wall(std::span<const std::int64_t> rows_per_expert,
                                const Placement& placement) {
  EPS_EXPECT(rows_per_expert.size() == static_cast<std::size_t>(placement.num_experts),
             "another number of row counts than experts");
  double most = 0;  // rows of a replica
  for (std::int32_t expert = 0; expert < placement.num_experts; ++expert) {
    const auto replicas = static_cast<double>(placement.slots_of_expert(expert).size());
    const auto rows = static_cast<double>(rows_per_expert[static_cast<std::size_t>(expert)]);
    most = std::max(most, rows / replicas);
  }
  if (most == 0) return std::nullopt;
  const auto total =
      std::accumulate(rows_per_expert.begin(), rows_per_expert.end(), std::int64_t{0});
  return static_cast<double>(total) / most;
}

}  // namespace epsweep
