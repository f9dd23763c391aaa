// Skew asked for by its outcome: finds the parameter of a distribution with which the hottest
// expert of a layer gets max_over_mean times the mean rows, in the very tokens the point draws.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "workload/distribution.h"

namespace epsweep {

// One try: a value of the skew parameter and the max/mean of rows per expert it led to.
struct SkewProbe {
  double param = 0;
  double max_over_mean = 0;
};

// Values of the parameter, narrowed to both sides of the target.
struct SkewSearch {
  SkewProbe even, most;            // both ends of the range
  SkewProbe below, above;          // the last ones on either side of the target
  std::optional<SkewProbe> found;  // within the tolerance
};

// Bisection, at most 14 probes. The outcome is within reach if it lies between `even` and `most`.
SkewSearch search_skew(const std::function<double(double param)>& realised, const SkewRange& range,
                       double target, double tolerance);

// How a layer is drawn so that it meets its target.
struct SolvedSkew {
  double param = 0;
  double max_over_mean = 0;  // realised
  // Outcomes jump, because a sampler's tables change with the parameter. Where one jumps over the
  // target, the first num_split tokens are drawn with split_param, a ten-thousandth of the range
  // beside param: one token more or less changes no expert by more than a row.
  double split_param = 0;
  std::int64_t num_split = 0;
};

// What the routing asks for; absent where it says its skew parameter.
std::optional<double> asked_max_over_mean(const Routing& routing);

// The routing with the parameter in place of max_over_mean.
Routing with_skew(const Routing& routing, const std::string& param, double value);

// Meets the target of the context's routing in its layer within 1 % or one row, whichever is more.
// The context has tokens. Throws ConfigError with the bounds where the target is out of reach.
SolvedSkew solve_skew(const Distribution& distribution, const RoutingContext& context);

// The router of a routing that asks for max_over_mean; `solved` is absent where there are no
// tokens.
TokenRouter make_solved_router(const Distribution& distribution, const RoutingContext& context,
                               const std::optional<SolvedSkew>& solved);

}  // namespace epsweep
