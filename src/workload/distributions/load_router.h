// What the distributions share that are given by how often each expert is picked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "workload/distribution.h"

namespace epsweep {

// Every token draws top_k distinct experts in proportion to `loads`, one load per expert.
// Throws ConfigError, naming the distribution, if fewer than top_k loads are positive.
TokenRouter route_by_load(const RoutingContext& context, std::span<const double> loads);

// The clock rates by which it draws (ExpertSampler), for distributions that draw by another rule.
std::vector<double> race_rates(const RoutingContext& context, std::span<const double> loads);

// For what belongs to a layer and stays from step to step, such as which experts are popular.
// `part` keeps several such things of one layer apart.
RandomStream load_stream(const RoutingContext& context, std::uint64_t part = 0);

// The numbers 0..size-1 in random order (Fisher-Yates).
std::vector<std::int32_t> shuffled(const RandomStream& stream, int size);

// The hot experts share `hot_fraction` of all assignments equally, the others the rest.
// Throws ConfigError if distinct experts cannot take such shares; `hot_name` says in the message
// what made them hot.
std::vector<double> hot_set_loads(const RoutingContext& context, std::span<const std::int32_t> hot,
                                  double hot_fraction, const std::string& hot_name);

// What hot_fraction may be with that many hot experts: from all experts alike to hot experts in
// every token, or no others left.
SkewRange hot_fraction_range(const RoutingContext& context, std::int64_t num_hot);

}  // namespace epsweep
