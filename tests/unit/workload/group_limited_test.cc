// That the shortcuts of group_limited change nothing: its choices against its definition.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/top_k.h"
#include "sample_points.h"
#include "workload/distributions/load_router.h"
#include "workload/distributions/lognormal_loads.h"
#include "workload/trace.h"

namespace epsweep {
namespace {

struct Shape {
  int num_experts, top_k, num_groups, topk_groups;
  bool selection_bias;
  double sigma;
};

SweepPoint grouped_point(const Shape& shape) {
  SweepPoint point = sample_point("group_limited", shape.num_experts, shape.top_k, 2000);
  point.model.router = {.num_groups = shape.num_groups,
                        .topk_groups = shape.topk_groups,
                        .selection_bias = shape.selection_bias};
  set_param(point.routing, "sigma_block", shape.sigma);
  set_param(point.routing, "sigma_expert", shape.sigma);
  return point;
}

// Log rate plus Gumbel noise of every expert, in full precision.
Trace by_definition(const SweepPoint& point) {
  const RoutingContext context = {
      point.model.num_experts, point.model.top_k, point.tokens_global(), 0, point.step, point.seed,
      &point.routing,          &point.model};
  const std::vector<double> rates = race_rates(context, lognormal_loads(context));
  const GroupLimit limit = point.model.router.group_limit();
  GroupScratch<double> scratch;
  scratch.reserve(limit);
  Trace trace{point.tokens_global(), point.model.top_k, point.model.num_experts, {}};
  std::vector<std::int32_t> experts(static_cast<std::size_t>(point.model.top_k));
  for (std::int64_t token = 0; token < trace.num_tokens; ++token) {
    const RandomStream stream(point.seed, Stream::routing, 0, 0, static_cast<std::uint64_t>(token));
    std::vector<double> scores;
    for (std::size_t e = 0; e < rates.size(); ++e) {
      const double ring = std::max(-std::log1p(-stream.uniform(e)), 1e-20);
      scores.push_back(std::clamp(std::log(rates[e]), -1e4, 1e4) - std::log(ring));
    }
    limited_top_k(std::span<const double>(scores), limit, scratch, std::span(experts));
    trace.experts.insert(trace.experts.end(), experts.begin(), experts.end());
  }
  return trace;
}

TEST(GroupLimitedShortcuts, choices_are_those_of_the_definition) {
  for (const Shape& shape : std::vector<Shape>{{256, 8, 8, 4, true, 0},
                                               {256, 8, 8, 4, true, 0.5},
                                               {256, 8, 8, 4, false, 3},
                                               {160, 6, 8, 3, false, 0.3},
                                               {64, 8, 32, 4, true, 1},
                                               {64, 4, 64, 4, true, 1},
                                               {24, 12, 2, 1, true, 2},
                                               {12, 5, 2, 1, false, 3},
                                               {32, 4, 4, 4, true, 1}}) {
    SCOPED_TRACE(shape.num_experts + 1000 * shape.num_groups);
    const SweepPoint point = grouped_point(shape);
    EXPECT_EQ(draw_trace(point, 0).experts, by_definition(point).experts);
  }
}

// As drawn before there were shortcuts: DeepSeek-V3's shape, 4096 tokens.
TEST(GroupLimitedShortcuts, a_known_routing_checksum) {
  SweepPoint point = grouped_point({256, 8, 8, 4, true, 0});
  point.concurrency.tokens = 4096;
  EXPECT_EQ(routing_checksum(std::vector<Trace>{draw_trace(point, 0)}), 0xf32fa163cd956afcULL);
}

}  // namespace
}  // namespace epsweep
