// Loads that look like those of a trained model: lognormal, neighbours hot together.
#pragma once

#include <vector>

#include "workload/distribution.h"

namespace epsweep {

struct BlockSigmas {
  double block = 0, subblock = 0, expert = 0;
};

// The parameters sigma_block, sigma_subblock and sigma_expert with these defaults, and sigma_scale,
// by which all three are multiplied: more or less skew of the same shape.
std::vector<ParamSpec> sigma_params(const BlockSigmas& defaults);
SkewKnob sigma_scale_knob();

// load = exp(a + b + c): a per block of 32 experts, b per block of 8, c per expert, normal with the
// routing's sigmas times its sigma_scale. All loads are 1 if these are 0.
std::vector<double> lognormal_loads(const RoutingContext& context);

}  // namespace epsweep
