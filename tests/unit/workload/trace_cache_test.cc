#include "workload/trace_cache.h"

#include <gtest/gtest.h>

#include "sample_points.h"

namespace epsweep {
namespace {

SweepPoint point_of(std::int64_t tokens, int ep_size = 2) {
  SweepPoint point;
  point.model = {.name = "m", .source = "", .hidden_dim = 8, .expert_io_dim = 8, .ffn_dim = 4};
  point.model.num_experts = 8;
  point.model.top_k = 2;
  point.ep_size = ep_size;
  point.layers = 2;
  point.concurrency.tokens = tokens;
  point.routing.distribution = "uniform";
  return point;
}

TEST(TraceCache, gives_what_drawing_gives) {
  TraceCache cache;
  for (const int layer : {0, 1, 0}) {
    EXPECT_EQ(cache.of(point_of(64), layer).experts, draw_trace(point_of(64), layer).experts);
  }
}

TEST(TraceCache, shares_between_ep_sizes) {
  TraceCache cache;
  const std::int32_t* first = cache.of(point_of(64, 2), 0).experts.data();
  EXPECT_EQ(cache.of(point_of(64, 4), 0).experts.data(), first);
}

TEST(TraceCache, forgets_what_was_used_longest_ago) {
  TraceCache cache(2 * 64 * 2 * 4);  // two traces of 64 tokens
  cache.of(point_of(64), 0);
  const std::int32_t* second = cache.of(point_of(64), 1).experts.data();
  cache.of(point_of(63), 0);
  EXPECT_EQ(cache.of(point_of(64), 1).experts.data(), second);
  // More than fits at all is drawn all the same.
  EXPECT_EQ(cache.of(point_of(4096), 0).num_tokens, 4096);
}

// 8 tokens of 2 experts are 64 bytes: a quarter of 256.
TEST(Trace, RefusedAboveAQuarterOfTheMachine) {
  const SweepPoint point = sample_point("uniform", 8, 2, 8);
  EXPECT_EQ(trace_refusal(point, 256), std::nullopt);
  ASSERT_TRUE(trace_refusal(point, 252).has_value());
  EXPECT_NE(trace_refusal(point, 252)->find("8 tokens x top_k 2 x 4 bytes"), std::string::npos);
}

}  // namespace
}  // namespace epsweep
