#include "workload/distributions/lognormal_loads.h"

#include <cmath>
#include <numbers>

#include "workload/distributions/load_router.h"

namespace epsweep {
namespace {

constexpr std::size_t kBlock = 32, kSubblock = 8;
constexpr double kMaxScale = 10;

// Standard normal value number `index` of a stream (Box and Muller 1958).
double normal(const RandomStream& stream, std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log1p(-stream.uniform(2 * index)));
  return radius * std::cos(2 * std::numbers::pi * stream.uniform(2 * index + 1));
}

}  // namespace

std::vector<ParamSpec> sigma_params(const BlockSigmas& defaults) {
  constexpr auto kNumber = ParamSpec::Kind::number;
  return {{"sigma_block", kNumber, 0, 3, defaults.block, "log spread per block of 32 experts"},
          {"sigma_subblock", kNumber, 0, 3, defaults.subblock, "log spread per block of 8 experts"},
          {"sigma_expert", kNumber, 0, 3, defaults.expert, "log spread per expert"},
          {"sigma_scale", kNumber, 0, kMaxScale, 1, "factor on all three sigmas",
           ParamSpec::Presence::when_said}};
}

SkewKnob sigma_scale_knob() {
  return {"sigma_scale", [](const RoutingContext&) { return SkewRange{0, kMaxScale}; }};
}

std::vector<double> lognormal_loads(const RoutingContext& context) {
  const Routing& routing = *context.routing;
  const double scale = routing.param_or("sigma_scale", 1);
  const double sigma_block = scale * routing.param("sigma_block");
  const double sigma_subblock = scale * routing.param("sigma_subblock");
  const double sigma_expert = scale * routing.param("sigma_expert");
  const RandomStream blocks = load_stream(context, 0);
  const RandomStream subblocks = load_stream(context, 1);
  const RandomStream experts = load_stream(context, 2);
  std::vector<double> loads(static_cast<std::size_t>(context.num_experts));
  for (std::size_t e = 0; e < loads.size(); ++e) {
    loads[e] = std::exp(sigma_block * normal(blocks, e / kBlock) +
                        sigma_subblock * normal(subblocks, e / kSubblock) +
                        sigma_expert * normal(experts, e));
  }
  return loads;
}

}  // namespace epsweep
