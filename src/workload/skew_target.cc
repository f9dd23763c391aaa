#include "workload/skew_target.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep {
namespace {

// Far below what a row can tell.
constexpr int kBisections = 12;

TokenRouter make_with(const Distribution& distribution, RoutingContext context, double value) {
  const Routing routing = with_skew(*context.routing, distribution.skew.param, value);
  context.routing = &routing;
  return distribution.make(context);
}

double mean_rows(const RoutingContext& context) {
  return static_cast<double>(context.num_tokens) * context.top_k / context.num_experts;
}

double max_over_mean(const RoutingContext& context, const TokenRouter& router) {
  std::vector<std::int32_t> experts(static_cast<std::size_t>(context.top_k));
  std::vector<std::int64_t> rows(static_cast<std::size_t>(context.num_experts), 0);
  for (std::int64_t token = 0; token < context.num_tokens; ++token) {
    router(token, experts);
    for (const std::int32_t expert : experts) ++rows[static_cast<std::size_t>(expert)];
  }
  return static_cast<double>(std::ranges::max(rows)) / mean_rows(context);
}

TokenRouter split_router(std::int64_t num_split, TokenRouter first, TokenRouter rest) {
  return [num_split, first = std::move(first), rest = std::move(rest)](
             std::int64_t token, std::span<std::int32_t> experts) {
    (token < num_split ? first : rest)(token, experts);
  };
}

// With 0 tokens of `above` the outcome is below the target, with all of them it is not, and between
// them each step is a row at most: bisection ends within half a row of the target.
SolvedSkew solve_split(const Distribution& distribution, const RoutingContext& context,
                       const SkewSearch& search, double target) {
  const TokenRouter above = make_with(distribution, context, search.above.param);
  const TokenRouter below = make_with(distribution, context, search.below.param);
  SolvedSkew solved{.param = search.below.param,
                    .max_over_mean = search.above.max_over_mean,
                    .split_param = search.above.param,
                    .num_split = context.num_tokens};
  std::int64_t too_few = 0;
  while (solved.num_split - too_few > 1) {
    const std::int64_t middle = (too_few + solved.num_split) / 2;
    const double outcome = max_over_mean(context, split_router(middle, above, below));
    if (outcome < target) {
      too_few = middle;
    } else {
      solved.num_split = middle;
      solved.max_over_mean = outcome;
    }
  }
  return solved;
}

}  // namespace

Routing with_skew(const Routing& routing, const std::string& param, double value) {
  Routing changed = routing;
  for (Routing::Param& one : changed.params) {
    if (one.name == kMaxOverMean) one = {param, value};
  }
  return changed;
}

SkewSearch search_skew(const std::function<double(double param)>& realised, const SkewRange& range,
                       double target, double tolerance) {
  SkewSearch search;
  const auto probe = [&](double param) {
    const SkewProbe result{param, realised(param)};
    if (!search.found && std::fabs(result.max_over_mean - target) <= tolerance) {
      search.found = result;
    }
    return result;
  };
  search.below = search.even = probe(range.even);
  search.above = search.most = probe(range.most);
  if (target < search.even.max_over_mean || target > search.most.max_over_mean) return search;
  for (int i = 0; i < kBisections && !search.found; ++i) {
    const SkewProbe middle = probe((search.below.param + search.above.param) / 2);
    (middle.max_over_mean < target ? search.below : search.above) = middle;
  }
  return search;
}

std::optional<double> asked_max_over_mean(const Routing& routing) {
  const auto found = std::ranges::find(routing.params, kMaxOverMean, &Routing::Param::name);
  return found == routing.params.end() ? std::nullopt : std::optional(found->value);
}

SolvedSkew solve_skew(const Distribution& distribution, const RoutingContext& context) {
  const double target = asked_max_over_mean(*context.routing).value();
  const double tolerance = std::max(target * 0.01, 1 / mean_rows(context));
  const auto realised = [&](double value) {
    return max_over_mean(context, make_with(distribution, context, value));
  };
  const SkewSearch search =
      search_skew(realised, distribution.skew.range(context), target, tolerance);
  if (search.found) {
    return {.param = search.found->param, .max_over_mean = search.found->max_over_mean};
  }
  if (search.even.max_over_mean == search.most.max_over_mean) {
    throw ConfigError(fmt::format(
        "{}, layer {}: max_over_mean stays at {:.3g} whatever {} is: its other parameters leave "
        "nothing to change",
        context.routing->label(), context.layer, search.even.max_over_mean,
        distribution.skew.param));
  }
  if (target < search.even.max_over_mean || target > search.most.max_over_mean) {
    throw ConfigError(fmt::format(
        "{}, layer {}: max_over_mean {} is outside {:.3g}..{:.3g}, what {} reaches with {} of {} "
        "experts and {} tokens",
        context.routing->label(), context.layer, target, search.even.max_over_mean,
        search.most.max_over_mean, distribution.name, context.top_k, context.num_experts,
        context.num_tokens));
  }
  return solve_split(distribution, context, search, target);
}

TokenRouter make_solved_router(const Distribution& distribution, const RoutingContext& context,
                               const std::optional<SolvedSkew>& solved) {
  const double param = solved ? solved->param : distribution.skew.range(context).even;
  TokenRouter router = make_with(distribution, context, param);
  if (!solved || solved->num_split == 0) return router;
  return split_router(solved->num_split, make_with(distribution, context, solved->split_param),
                      std::move(router));
}

}  // namespace epsweep
