// Skew asked for by its outcome: finds the parameter of a distribution with which the hottest
// expert of a layer gets max_over_mean times the mean rows, in the tokens that the point draws.
#pragma once

#include <functional>
#include <optional>

#include "workload/distribution.h"

namespace epsweep {

// One try: a value of the skew parameter and the max/mean of rows per expert it led to.
struct SkewProbe {
  double param = 0;
  double max_over_mean = 0;
};

struct SkewSearch {
  SkewProbe even, most;            // both ends of the range
  std::optional<SkewProbe> found;  // within the tolerance
  int num_probes = 0;
};

// Bisection. `realised` rises only roughly, because the tokens are drawn anew for every value:
// where it jumps over the target, values nearby are tried as well.
SkewSearch search_skew(const std::function<double(double param)>& realised, const SkewRange& range,
                       double target, double tolerance);

// What the routing asks for; absent where it says its skew parameter.
std::optional<double> asked_max_over_mean(const Routing& routing);

// The routing with the parameter that was found in the place of max_over_mean.
Routing with_skew(const Routing& routing, const std::string& param, double value);

// The probe that meets the target of the context's routing in its layer within 1 % or one row,
// whichever is more. Its token count is not 0. Throws ConfigError with the bounds that can be
// reached.
SkewProbe solve_skew(const Distribution& distribution, const RoutingContext& context);

}  // namespace epsweep
