#include "workload/token_sample.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "sample_points.h"

namespace epsweep {
namespace {

TEST(TokenSample, draws_other_tokens_of_the_same_stream) {
  const SweepPoint point = sample_point("zipf", 64, 4, 1000);
  const TokenSample sample = draw_sample(point, 0);
  EXPECT_EQ(sample.trace.num_tokens, 4096);
  EXPECT_GT(sample.first_token, INT32_MAX);
  // The point's own router, asked for the same tokens.
  const TokenRouter router = make_token_router(point, 0);
  std::vector<std::int32_t> experts(4);
  router(sample.first_token + 77, experts);
  const auto drawn = sample.trace.of_token(77);
  EXPECT_TRUE(std::ranges::equal(experts, drawn));
  // And not the tokens that the point runs.
  const Trace own = draw_trace(point, 0);
  EXPECT_FALSE(std::equal(own.experts.begin(), own.experts.end(), sample.trace.experts.begin()));
}

// The search for the parameter looks at the point's own tokens, never at 2^32 of them.
TEST(TokenSample, of_an_asked_skew_uses_what_the_point_found) {
  SweepPoint point = sample_point("zipf", 64, 4, 1000);
  point.routing.params = {{kMaxOverMean, 3}};
  const double alpha = solved_skew(point, 1)->param;
  SweepPoint told = point;
  told.routing.params = {{"zipf_alpha", alpha}};
  EXPECT_EQ(draw_sample(point, 1).trace.experts, draw_sample(told, 1).trace.experts);
  EXPECT_EQ(point_as_solved(told, 1).routing.label(), told.routing.label());
}

TEST(TokenSample, is_shared_by_points_of_equal_routing) {
  SampleCache samples;
  SweepPoint point = sample_point("zipf", 64, 4, 1000, 8);
  const TokenSample* first = &samples.of(point, 0);
  point.ep_size = 16;
  point.concurrency.tokens = 50;
  point.placement = "round_robin";
  EXPECT_EQ(&samples.of(point, 0), first);
  EXPECT_NE(&samples.of(point, 1), first);
  point.seed = 2;
  EXPECT_NE(&samples.of(point, 0), first);
}

TEST(TokenSample, costly_routers_get_fewer_tokens) {
  SweepPoint point = sample_point("gate", 256, 8, 16);
  point.model.hidden_dim = 7168;
  EXPECT_EQ(num_sample_tokens(point), 585);  // 2^30 / (256 * 7168) = 585.1
  point.model.hidden_dim = 100;
  EXPECT_EQ(num_sample_tokens(point), 4096);
  point.model.hidden_dim = 1 << 20;
  EXPECT_EQ(num_sample_tokens(point), 256);
  point.routing.distribution = "uniform";
  EXPECT_EQ(num_sample_tokens(point), 4096);
}

TEST(TokenSample, recordings_end) {
  EXPECT_THROW(draw_sample(sample_point("recorded_trace", 64, 8, 64), 0), RunError);
}

// E = 256, k = 8, seed 1: recomputed with a program of its own, straight from the definition of the
// streams. Traces must never change: records of other versions are compared by this number.
TEST(TokenSample, a_known_routing_checksum) {
  const SweepPoint point = sample_point("uniform", 256, 8, 4096);
  EXPECT_EQ(routing_checksum(std::vector<Trace>{draw_trace(point, 0)}), 0x20dcfe3266078eafULL);
}

}  // namespace
}  // namespace epsweep
