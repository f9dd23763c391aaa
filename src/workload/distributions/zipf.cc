// Expert popularity by a power law of its popularity rank.
#include <cmath>
#include <vector>

#include "workload/distributions/load_router.h"

namespace epsweep {
namespace {

constexpr double kMaxAlpha = 8;

// The i-th most popular expert, i from 1, has load i^-zipf_alpha; the popularity order is drawn
// anew for each layer.
TokenRouter make(const RoutingContext& context) {
  const double alpha = context.routing->param("zipf_alpha");
  const std::vector<std::int32_t> order = shuffled(load_stream(context), context.num_experts);
  std::vector<double> loads(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    loads[static_cast<std::size_t>(order[i])] = std::pow(static_cast<double>(i + 1), -alpha);
  }
  return route_by_load(context, loads);
}

const bool registered = DistributionCatalog::instance().add(
    {"zipf",
     "load of the i-th most popular expert is i^-zipf_alpha; popularity order random per layer",
     {{"zipf_alpha", ParamSpec::Kind::number, 0, kMaxAlpha, 1.0, "exponent; 0 is uniform"}},
     make,
     {"zipf_alpha", [](const RoutingContext&) {
        return SkewRange{0, kMaxAlpha};
      }}});

}  // namespace
}  // namespace epsweep
