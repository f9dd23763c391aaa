// Synthetic loads that look like those of a trained model: lognormal, neighbours hot together.
#include <cmath>
#include <numbers>
#include <vector>

#include "workload/distributions/load_router.h"

namespace epsweep {
namespace {

constexpr std::size_t kBlock = 32, kSubblock = 8;

// Standard normal value number `index` of a stream (Box and Muller 1958).
double normal(const RandomStream& stream, std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log1p(-stream.uniform(2 * index)));
  return radius * std::cos(2 * std::numbers::pi * stream.uniform(2 * index + 1));
}

// load = exp(a + b + c): a per block of 32 experts, b per block of 8, c per expert. The default
// sigmas are a fit to published expert loads of DeepSeek-V3 (256 experts): contiguous placement
// then shows max/mean rank loads of 1.9/2.1/2.5/3.1/4.1/6.2 at EP 8/16/32/64/128/256, means over
// layers. Independent loads (sigma_block = sigma_subblock = 0) understate that.
TokenRouter make(const RoutingContext& context) {
  const Routing& routing = *context.routing;
  const double sigma_block = routing.param("sigma_block");
  const double sigma_subblock = routing.param("sigma_subblock");
  const double sigma_expert = routing.param("sigma_expert");
  const RandomStream blocks = load_stream(context, 0);
  const RandomStream subblocks = load_stream(context, 1);
  const RandomStream experts = load_stream(context, 2);
  std::vector<double> loads(static_cast<std::size_t>(context.num_experts));
  for (std::size_t e = 0; e < loads.size(); ++e) {
    loads[e] = std::exp(sigma_block * normal(blocks, e / kBlock) +
                        sigma_subblock * normal(subblocks, e / kSubblock) +
                        sigma_expert * normal(experts, e));
  }
  return route_by_load(context, loads);
}

const bool registered = DistributionCatalog::instance().add(
    {"lognormal_blocks",
     "loads like a trained model's: lognormal, with neighbouring experts hot together",
     {{"sigma_block", ParamSpec::Kind::number, 0, 3, 0.5, "log spread per block of 32 experts"},
      {"sigma_subblock", ParamSpec::Kind::number, 0, 3, 0.2, "log spread per block of 8 experts"},
      {"sigma_expert", ParamSpec::Kind::number, 0, 3, 0.6, "log spread per expert"}},
     make});

}  // namespace
}  // namespace epsweep
