// A few hot experts, anywhere, that take a stated share of all assignments.
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "workload/distributions/load_router.h"

namespace epsweep {
namespace {

int hot_experts(const RoutingContext& context) {
  const auto num_hot = static_cast<int>(context.routing->param("num_hot"));
  if (num_hot > context.num_experts) {
    throw ConfigError(fmt::format("{}: num_hot {} exceeds the model's {} experts",
                                  context.routing->label(), num_hot, context.num_experts));
  }
  return num_hot;
}

TokenRouter make(const RoutingContext& context) {
  const int num_hot = hot_experts(context);
  const std::vector<std::int32_t> order = shuffled(load_stream(context), context.num_experts);
  const std::vector<double> loads =
      hot_set_loads(context, std::span(order).first(static_cast<std::size_t>(num_hot)),
                    context.routing->param("hot_fraction"), fmt::format("num_hot {}", num_hot));
  return route_by_load(context, loads);
}

const bool registered = DistributionCatalog::instance().add(
    {"k_hot",
     "num_hot experts, random per layer, share hot_fraction of all assignments",
     {{"num_hot", ParamSpec::Kind::count, 1, 16'384, 4, "number of hot experts"},
      {"hot_fraction", ParamSpec::Kind::number, 0, 1, 0.5,
       "share of all assignments that goes to the hot experts"}},
     make,
     {"hot_fraction", [](const RoutingContext& context) {
        return hot_fraction_range(context, hot_experts(context));
      }}});

}  // namespace
}  // namespace epsweep
