// One hot EP rank: the worst case for contiguous placement at one EP size.
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "plan/sweep_point.h"
#include "workload/distributions/load_router.h"

namespace epsweep {
namespace {

int hot_ep_size_of(const RoutingContext& context) {
  return static_cast<int>(context.routing->param("hot_ep_size"));
}

std::int64_t hot_experts(const RoutingContext& context) {
  return near_equal_split(context.num_experts, hot_ep_size_of(context)).front();
}

// The hot rank is that of hot_ep_size and not of the point's EP size, so that the routing stays the
// same while EP size varies: at wider EP the heat spreads over more ranks.
TokenRouter make(const RoutingContext& context) {
  const std::int64_t num_hot = hot_experts(context);
  std::vector<std::int32_t> hot(static_cast<std::size_t>(num_hot));
  std::iota(hot.begin(), hot.end(), 0);
  const std::vector<double> loads =
      hot_set_loads(context, hot, context.routing->param("hot_fraction"),
                    fmt::format("rank 0 at hot_ep_size {}", hot_ep_size_of(context)));
  return route_by_load(context, loads);
}

const bool registered = DistributionCatalog::instance().add(
    {"hot_rank",
     "the experts of EP rank 0 at hot_ep_size (contiguous) share hot_fraction of all assignments",
     {{"hot_fraction", ParamSpec::Kind::number, 0, 1, 0.5,
       "share of all assignments that goes to the hot rank"},
      {"hot_ep_size", ParamSpec::Kind::count, 1, 16'384, 8,
       "EP size at which contiguous placement puts the hot experts on rank 0"}},
     make,
     {"hot_fraction", [](const RoutingContext& context) {
        return hot_fraction_range(context, hot_experts(context));
      }}});

}  // namespace
}  // namespace epsweep
