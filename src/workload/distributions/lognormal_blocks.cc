// Synthetic loads that look like those of a trained model: lognormal, neighbours hot together.
#include "workload/distributions/load_router.h"
#include "workload/distributions/lognormal_loads.h"

namespace epsweep {
namespace {

TokenRouter make(const RoutingContext& context) {
  return route_by_load(context, lognormal_loads(context));
}

// The default sigmas are a fit to published expert loads of DeepSeek-V3 (256 experts): contiguous
// placement then shows max/mean rank loads of 1.9/2.1/2.5/3.1/4.1/6.2 at EP 8/16/32/64/128/256,
// means over layers. Independent loads (sigma_block = sigma_subblock = 0) understate that.
const bool registered = DistributionCatalog::instance().add(
    {"lognormal_blocks",
     "loads like a trained model's: lognormal, with neighbouring experts hot together",
     sigma_params({.block = 0.5, .subblock = 0.2, .expert = 0.6}), make, sigma_scale_knob()});

}  // namespace
}  // namespace epsweep
