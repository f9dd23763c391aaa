// What part of an imbalance is chance, and how wide a hot expert lets a layer go.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "workload/placement.h"

namespace epsweep {

// The x below which a standard normal variable is with probability p, 0 < p < 1. Algorithm AS 241
// (PPND16; Wichura, Applied Statistics 37, 1988), relative accuracy about 1e-16.
double normal_quantile(double p);

// Uniform routing: every token picks top_k of the experts at random.
struct UniformRouting {
  int num_experts = 0;
  int top_k = 0;
  std::int64_t num_tokens = 0;  // C
  int ep_size = 0;
};

// Expected max/mean of rank rows under uniform routing: no placement removes it, so it is taken off
// before a router is blamed or a placement is credited. A rank's rows have, with k = top_k and
// f = 1/ep_size, mean C*k*f and variance C*k*f*(1-f)*(E-k)/(E-1), since a token's experts are
// distinct (hypergeometric); the largest of P ranks lies at the normal quantile of
// (P - 0.375)/(P + 0.25) (Blom 1958). With few rows per rank it is up to 15 % of its excess too
// low. Absent without rows; 1 at one rank. Ranks are taken as equal: it is not for an ep_size above
// the number of experts without replicas.
std::optional<double> uniform_skew_floor(const UniformRouting& routing);

// The EP size from which on width stops helping: min over experts of replicas / (share of all
// assignments), because no rank has less than one replica's rows. Absent without rows.
std::optional<double> skew_wall(std::span<const std::int64_t> rows_per_expert,
                                const Placement& placement);

}  // namespace epsweep
