// Every expert is as likely as any other: what an untrained router does.
#include <vector>

#include "workload/distributions/load_router.h"

namespace epsweep {
namespace {

TokenRouter make(const RoutingContext& context) {
  const std::vector<double> loads(static_cast<std::size_t>(context.num_experts), 1.0);
  return route_by_load(context, loads);
}

const bool registered =
    DistributionCatalog::instance().add({"uniform",
                                         "every expert equally likely; ranks are uneven by chance",
                                         {},
                                         make,
                                         {},
                                         nullptr,
                                         Foresight::uniform});

}  // namespace
}  // namespace epsweep
