#include "workload/distributions/load_router.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "workload/expert_sampler.h"

namespace epsweep {
namespace {

ExpertSampler make_sampler(const RoutingContext& context, std::span<const double> loads) {
  EPS_EXPECT(loads.size() == static_cast<std::size_t>(context.num_experts),
             "another number of loads than experts");
  try {
    return ExpertSampler(loads, context.top_k);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format(
        "{}, layer {}: {}",
        context.routing->file.empty() ? context.routing->label() : context.routing->file,
        context.layer, error.what()));
  }
}

}  // namespace

TokenRouter route_by_load(const RoutingContext& context, std::span<const double> loads) {
  return [sampler = make_sampler(context, loads), seed = context.seed,
          layer = static_cast<std::uint64_t>(context.layer),
          step = static_cast<std::uint64_t>(context.step)](std::int64_t token,
                                                           std::span<std::int32_t> experts) {
    sampler.draw(
        RandomStream(seed, Stream::routing, layer, step, static_cast<std::uint64_t>(token)),
        experts);
  };
}

std::vector<double> race_rates(const RoutingContext& context, std::span<const double> loads) {
  return make_sampler(context, loads).rates();
}

RandomStream load_stream(const RoutingContext& context, std::uint64_t part) {
  return RandomStream(context.seed, Stream::load, static_cast<std::uint64_t>(context.layer), part);
}

std::vector<std::int32_t> shuffled(const RandomStream& stream, int size) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[stream.below(i, i + 1)]);
  return order;
}

std::vector<double> hot_set_loads(const RoutingContext& context, std::span<const std::int32_t> hot,
                                  double hot_fraction, const std::string& hot_name) {
  const auto num_hot = static_cast<double>(hot.size());
  const double num_cold = context.num_experts - num_hot;
  const double hot_picks = hot_fraction * context.top_k;
  const double cold_picks = context.top_k - hot_picks;
  constexpr double kRounding = 1e-9;
  const auto refuse = [&](double picks, const char* which, double experts) {
    throw ConfigError(fmt::format(
        "{}: hot_fraction {} gives {:.3g} of each token's {} picks to the {} {} experts ({}, {} "
        "experts in all), and a token picks an expert at most once",
        context.routing->label(), hot_fraction, picks, context.top_k, experts, which, hot_name,
        context.num_experts));
  };
  if (hot_picks > num_hot + kRounding) refuse(hot_picks, "hot", num_hot);
  if (cold_picks > num_cold + kRounding) refuse(cold_picks, "other", num_cold);

  const double cold_load = num_cold > 0 ? cold_picks / num_cold : 0;
  std::vector<double> loads(static_cast<std::size_t>(context.num_experts), cold_load);
  for (const std::int32_t expert : hot) {
    loads[static_cast<std::size_t>(expert)] = hot_picks / num_hot;
  }
  return loads;
}

SkewRange hot_fraction_range(const RoutingContext& context, std::int64_t num_hot) {
  const double even = static_cast<double>(num_hot) / context.num_experts;
  return {even, std::min(1.0, static_cast<double>(num_hot) / context.top_k)};
}

}  // namespace epsweep
