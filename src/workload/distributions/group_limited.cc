// Random choices under the expert groups of the model's router, which limit how many ranks a token
// goes to.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "workload/distributions/load_router.h"
#include "workload/distributions/lognormal_loads.h"

namespace epsweep {
namespace {

// Log rates beyond any noise: an expert that every token has, and one that no token has.
constexpr double kAlways = 1e4, kNever = -1e4;

double log_rate(double rate) {
  return std::clamp(std::log(rate), kNever, kAlways);
}

// The score of an expert is its log rate plus Gumbel noise. Without groups the top_k best scores
// are then exactly what a distribution by load draws (a race of exponential clocks). Groups are
// judged as the model's router judges them, by their best score or the sum of the two best, so
// which are kept follows the loads too: a hot group is kept more often than its load alone would
// say. With the sigmas of lognormal_blocks, 256 experts and 4 of 8 groups kept, max/mean rank loads
// at EP 8/32/256 rise from 1.92/2.56/6.35 to 2.13/2.82/6.86 (20,000 tokens, means over 40 layers).
// A draw costs about 6 us for 256 experts.
struct GroupLimitedRouter {
  std::vector<double> log_rates;
  GroupLimit limit;
  std::uint64_t seed, layer, step;

  void operator()(std::int64_t token, std::span<std::int32_t> experts) const {
    const RandomStream stream(seed, Stream::routing, layer, step,
                              static_cast<std::uint64_t>(token));
    std::vector<double> scores(log_rates.size());
    for (std::size_t e = 0; e < scores.size(); ++e) {
      // A uniform value of 0 would make the score infinite.
      const double ring = std::max(-std::log1p(-stream.uniform(e)), 1e-20);
      scores[e] = log_rates[e] - std::log(ring);
    }
    GroupScratch<double> scratch;
    scratch.reserve(limit);
    limited_top_k(std::span<const double>(scores), limit, scratch, experts);
  }
};

TokenRouter make(const RoutingContext& context) {
  EPS_EXPECT(context.model != nullptr, "a routing without its model");
  const ModelShape& model = *context.model;
  const std::string label = context.routing->label();
  if (model.router.num_groups == 1) {
    throw ConfigError(
        fmt::format("{}: the router of {} has no expert groups (num_groups is 1); uniform and "
                    "lognormal_blocks are the distributions without",
                    label, model.name));
  }
  if (const auto problem = find_router_problem(model)) {
    throw ConfigError(fmt::format("{}: {}", label, problem->text));
  }
  std::vector<double> log_rates = race_rates(context, lognormal_loads(context));
  for (double& rate : log_rates) rate = log_rate(rate);
  return GroupLimitedRouter{std::move(log_rates), model.router.group_limit(), context.seed,
                            static_cast<std::uint64_t>(context.layer),
                            static_cast<std::uint64_t>(context.step)};
}

const bool registered = DistributionCatalog::instance().add(
    {"group_limited",
     "uniform, or lognormal_blocks with sigmas, within the best topk_groups of the model's expert "
     "groups",
     sigma_params({}), make, sigma_scale_knob()});

}  // namespace
}  // namespace epsweep
