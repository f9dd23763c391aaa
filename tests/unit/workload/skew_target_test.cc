#include "workload/skew_target.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "sample_points.h"
#include "workload/trace.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

double max_over_mean(const SweepPoint& point, int layer) {
  const std::vector<std::int64_t> rows = rows_per_expert(draw_trace(point, layer));
  const double mean =
      static_cast<double>(point.tokens_global()) * point.model.top_k / point.model.num_experts;
  return static_cast<double>(std::ranges::max(rows)) / mean;
}

std::vector<std::string> distributions_with_a_knob() {
  std::vector<std::string> names = DistributionCatalog::instance().names();
  std::erase_if(names, [](const std::string& name) {
    return DistributionCatalog::instance().at(name).skew.param.empty();
  });
  return names;
}

SweepPoint asking_point(const std::string& distribution, std::int64_t tokens, double target) {
  SweepPoint point = sample_point(distribution, 256, 8, tokens);
  if (distribution == "group_limited") set_param(point.routing, "sigma_expert", 0.6);
  ask_for(point.routing, target);
  return point;
}

TEST(SkewTarget, TheFourSkewedOnesAndTheirLimitedKinHaveOne) {
  EXPECT_THAT(
      distributions_with_a_knob(),
      testing::ElementsAre("group_limited", "hot_rank", "k_hot", "lognormal_blocks", "zipf"));
}

// Within 1 % or one row, whichever is more: 256 tokens have 8 rows per expert, 4,096 have 128.
TEST(SkewTarget, IsMetByTheTokensOfEveryLayer) {
  for (const std::string& name : distributions_with_a_knob()) {
    for (const std::int64_t tokens : {256, 4096}) {
      for (const double target : {2.7, 4.0, 6.5}) {
        const SweepPoint point = asking_point(name, tokens, target);
        for (int layer = 0; layer < 4; ++layer) {
          const double got = max_over_mean(point, layer);
          const double row = 256.0 / (8.0 * static_cast<double>(tokens));
          EXPECT_LE(std::fabs(got - target), std::max(0.01 * target, row) + 1e-12)
              << name << ", " << tokens << " tokens, layer " << layer;
          EXPECT_DOUBLE_EQ(solved_skew(point, layer)->max_over_mean, got);
        }
      }
    }
  }
}

TEST(SkewTarget, DoesNotDependOnEpSizeAndIsTheSameTwice) {
  SweepPoint point = asking_point("zipf", 512, 3);
  const Trace trace = draw_trace(point, 0);
  point.ep_size = 32;
  point.placement = "round_robin";
  EXPECT_EQ(draw_trace(point, 0).experts, trace.experts);
  const RoutingContext context = {256, 8, 512, 0, 0, 1, &point.routing, &point.model};
  const Distribution& zipf = DistributionCatalog::instance().at("zipf");
  EXPECT_EQ(solve_skew(zipf, context).param, solve_skew(zipf, context).param);
  EXPECT_EQ(solve_skew(zipf, context).param, solved_skew(point, 0)->param);
  point.seed = 2;
  EXPECT_NE(draw_trace(point, 0).experts, trace.experts);
}

TEST(SkewTarget, TheFoundParameterAloneDrawsTheSame) {
  SweepPoint point = asking_point("zipf", 4096, 3);
  const SolvedSkew solved = *solved_skew(point, 1);
  ASSERT_EQ(solved.num_split, 0);
  SweepPoint plain = sample_point("zipf", 256, 8, 4096);
  set_param(plain.routing, "zipf_alpha", solved.param);
  EXPECT_EQ(draw_trace(plain, 1).experts, draw_trace(point, 1).experts);
}

TEST(SkewTarget, OutOfReachNamesTheBounds) {
  // E/k = 32 is what any routing can reach: all tokens to the same experts.
  EXPECT_THAT(config_error([] { draw_trace(asking_point("zipf", 1024, 40), 0); }),
              AllOf(HasSubstr("zipf(max_over_mean=40), layer 0: max_over_mean 40 is outside 1."),
                    HasSubstr("..32, what zipf reaches with 8 of 256 experts and 1024 tokens")));
  // 32 hot experts in all tokens' picks: 256/32 = 8 and chance.
  EXPECT_THAT(config_error([] { draw_trace(asking_point("hot_rank", 8192, 10), 0); }),
              HasSubstr("..8."));
  EXPECT_NE(config_error([] { draw_trace(asking_point("zipf", 1024, 1.01), 0); }), "");
  // Nothing to scale: all sigmas are 0.
  SweepPoint flat = sample_point("group_limited", 256, 8, 1024);
  ask_for(flat.routing, 5);
  EXPECT_THAT(config_error([&] { draw_trace(flat, 0); }), HasSubstr("whatever sigma_scale is"));
}

TEST(SkewTarget, NoTokensNeedNoSearch) {
  const SweepPoint point = asking_point("zipf", 0, 3);
  EXPECT_FALSE(solved_skew(point, 0));
  EXPECT_TRUE(draw_trace(point, 0).experts.empty());
  EXPECT_FALSE(solved_skew(sample_point("zipf", 8, 2, 10), 0));
}

TEST(SkewTarget, AJumpOverTheTargetIsSplitByTokens) {
  // Below a half all tokens go to experts 0 and 1 of 4, else alternately to 0, 1 and to 0, 2.
  Distribution jump;
  jump.name = "jump";
  jump.skew = {"knob", [](const RoutingContext&) { return SkewRange{0, 1}; }};
  jump.make = [](const RoutingContext& context) -> TokenRouter {
    const bool steep = context.routing->param("knob") >= 0.5;
    return [steep](std::int64_t token, std::span<std::int32_t> experts) {
      experts[0] = steep ? 0 : static_cast<std::int32_t>(token % 4);
    };
  };
  const Routing routing{.distribution = "jump", .params = {{kMaxOverMean, 2.5}}};
  // 100 tokens over 4 experts: mean 25; even is 1, steep is 4, the target 62.5 rows.
  const RoutingContext context = {4, 1, 100, 0, 0, 1, &routing, nullptr};
  const SolvedSkew solved = solve_skew(jump, context);
  EXPECT_NEAR(solved.max_over_mean, 2.5, 1.0 / 25);
  // s steep tokens and a quarter of the others: s + (100 - s) / 4 = 62.5 at s = 50.
  EXPECT_NEAR(static_cast<double>(solved.num_split), 50, 2);
  const TokenRouter router = make_solved_router(jump, context, solved);
  std::int32_t expert = -1;
  router(0, std::span(&expert, 1));
  EXPECT_EQ(expert, 0);
  router(99, std::span(&expert, 1));
  EXPECT_EQ(expert, 3);
}

TEST(SearchSkew, HalvesTheRangeUntilItIsClose) {
  int probes = 0;
  const auto cube = [&probes](double x) {
    ++probes;
    return x * x * x;
  };
  const SkewSearch search = search_skew(cube, {0, 4}, 8, 0.01);
  ASSERT_TRUE(search.found);
  EXPECT_NEAR(search.found->param, 2, 0.001);
  EXPECT_LE(probes, 14);
  EXPECT_FALSE(search_skew(cube, {0, 4}, 65, 0.01).found);
  EXPECT_EQ(search_skew(cube, {0, 4}, 64, 0.01).found->param, 4);
}

}  // namespace
}  // namespace epsweep
