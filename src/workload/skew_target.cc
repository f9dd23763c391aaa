#include "workload/skew_target.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep {
namespace {

// 12 to 14 are the rule; more where a jump hides the target.
constexpr int kMostProbes = 48;
// Of the range. Below, a change of the parameter is less than a row; what happens is a jump.
constexpr double kNarrow = 1.0 / 8192;
constexpr double kNeighbourGrowth = 1.5;

// Values tried so far, and the outcome of each.
using Tried = std::map<double, double>;

// The middle of the narrowest interval that passes the target upwards and is worth halving.
std::optional<double> next_middle(const Tried& tried, double target, double narrow) {
  std::optional<double> middle;
  double best_width = INFINITY;
  for (auto left = tried.begin(), right = std::next(left); right != tried.end(); ++left, ++right) {
    const double width = right->first - left->first;
    if (left->second >= target || right->second < target) continue;
    if (width <= narrow || width >= best_width) continue;
    best_width = width;
    middle = (left->first + right->first) / 2;
  }
  return middle;
}

// The place where the target is passed in the narrowest interval.
double narrowest_passage(const Tried& tried, double target) {
  double place = 0, best_width = INFINITY;
  for (auto left = tried.begin(), right = std::next(left); right != tried.end(); ++left, ++right) {
    const double width = right->first - left->first;
    if (left->second >= target || right->second < target || width >= best_width) continue;
    best_width = width;
    place = (left->first + right->first) / 2;
  }
  return place;
}

double realised_max_over_mean(const Distribution& distribution, const RoutingContext& context) {
  const TokenRouter router = distribution.make(context);
  std::vector<std::int32_t> experts(static_cast<std::size_t>(context.top_k));
  std::vector<std::int64_t> rows(static_cast<std::size_t>(context.num_experts), 0);
  for (std::int64_t token = 0; token < context.num_tokens; ++token) {
    router(token, experts);
    for (const std::int32_t expert : experts) ++rows[static_cast<std::size_t>(expert)];
  }
  const double mean = static_cast<double>(context.num_tokens) * context.top_k / context.num_experts;
  return static_cast<double>(std::ranges::max(rows)) / mean;
}

}  // namespace

SkewSearch search_skew(const std::function<double(double param)>& realised, const SkewRange& range,
                       double target, double tolerance) {
  SkewSearch search;
  const auto probe = [&](double param) {
    const SkewProbe result{param, realised(param)};
    ++search.num_probes;
    if (!search.found && std::fabs(result.max_over_mean - target) <= tolerance) {
      search.found = result;
    }
    return result;
  };
  search.even = probe(range.even);
  search.most = probe(range.most);
  if (search.found || target < search.even.max_over_mean || target > search.most.max_over_mean) {
    return search;
  }
  Tried tried = {{search.even.param, search.even.max_over_mean},
                 {search.most.param, search.most.max_over_mean}};
  const double narrow = (range.most - range.even) * kNarrow;
  double offset = narrow;
  while (!search.found && search.num_probes < kMostProbes) {
    std::optional<double> value = next_middle(tried, target, narrow);
    if (!value) {
      const bool below = search.num_probes % 2 == 0;
      value = std::clamp(narrowest_passage(tried, target) + (below ? -offset : offset), range.even,
                         range.most);
      offset *= kNeighbourGrowth;
    }
    tried[*value] = probe(*value).max_over_mean;
  }
  return search;
}

std::optional<double> asked_max_over_mean(const Routing& routing) {
  const auto found = std::ranges::find(routing.params, kMaxOverMean, &Routing::Param::name);
  return found == routing.params.end() ? std::nullopt : std::optional(found->value);
}

Routing with_skew(const Routing& routing, const std::string& param, double value) {
  Routing changed = routing;
  for (Routing::Param& one : changed.params) {
    if (one.name == kMaxOverMean) one = {param, value};
  }
  return changed;
}

SkewProbe solve_skew(const Distribution& distribution, const RoutingContext& context) {
  const double target = asked_max_over_mean(*context.routing).value();
  const double mean = static_cast<double>(context.num_tokens) * context.top_k / context.num_experts;
  const auto realised = [&](double value) {
    const Routing routing = with_skew(*context.routing, distribution.skew.param, value);
    RoutingContext tried = context;
    tried.routing = &routing;
    return realised_max_over_mean(distribution, tried);
  };
  const SkewSearch search = search_skew(realised, distribution.skew.range(context), target,
                                        std::max(target * 0.01, 1 / mean));
  if (search.found) return *search.found;
  const std::string reach =
      fmt::format("{:.3g}..{:.3g}, what {} reaches with {} of {} experts and {} tokens",
                  search.even.max_over_mean, search.most.max_over_mean, distribution.name,
                  context.top_k, context.num_experts, context.num_tokens);
  const bool inside = target >= search.even.max_over_mean && target <= search.most.max_over_mean;
  throw ConfigError(fmt::format("{}, layer {}: max_over_mean {} is {} {}", context.routing->label(),
                                context.layer, target,
                                inside ? "met by no value tried inside" : "outside", reach));
}

}  // namespace epsweep
