// The key `sim` of an experiment: what is read and what is refused.
#include "plan/sim_costs.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "plan/yaml_tree.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

SimCosts read(const std::string& text) {
  return read_sim_costs(parse_yaml(text, "x.yaml"));
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(SimCosts, WhatIsSaidReplacesTheDefaults) {
  const SimCosts costs = read(
      "stages_us: {router: 7.5, dispatch: 0}\n"
      "ffn: {flop_per_s: 1e12, launch_us: 3}\n"
      "exchange: {intra_alpha_us: 1, intra_bytes_per_s: 2e9, inter_alpha_us: 3,\n"
      "           inter_bytes_per_s: 4e9, self_bytes_per_s: 5e9}\n"
      "ranks: {5: {slowdown: 1.2}}\n"
      "links: {7-2: {extra_us: 300}}\n"
      "noise: {relative: 0.02, run: 0.01, seed: 9}\n");
  EXPECT_EQ(costs.stage_us[static_cast<std::size_t>(Stage::router)], 7.5);
  EXPECT_EQ(costs.stage_us[static_cast<std::size_t>(Stage::dispatch)], 0);
  EXPECT_FALSE(costs.stage_us[static_cast<std::size_t>(Stage::combine)].has_value());
  EXPECT_EQ(costs.flop_per_s, 1e12);
  EXPECT_FALSE(costs.weight_bytes_per_s.has_value());
  EXPECT_EQ(costs.launch_us, 3);
  EXPECT_EQ(costs.intra.alpha_us, 1);
  EXPECT_EQ(costs.intra.bytes_per_s, 2e9);
  EXPECT_EQ(costs.inter.alpha_us, 3);
  EXPECT_EQ(costs.inter.bytes_per_s, 4e9);
  EXPECT_EQ(costs.self.bytes_per_s, 5e9);
  ASSERT_EQ(costs.ranks.size(), 1U);
  EXPECT_EQ(costs.ranks[0].rank, 5);
  EXPECT_EQ(costs.ranks[0].slowdown, 1.2);
  ASSERT_EQ(costs.links.size(), 1U);  // from either end
  EXPECT_EQ(costs.links[0].a, 2);
  EXPECT_EQ(costs.links[0].b, 7);
  EXPECT_EQ(costs.links[0].extra_us, 300);
  EXPECT_EQ(costs.noise.relative, 0.02);
  EXPECT_EQ(costs.noise.run, 0.01);
  EXPECT_EQ(costs.noise.seed, 9U);
  EXPECT_EQ(sim_costs_json(costs)["links"]["2-7"]["extra_us"], 300);
}

TEST(SimCosts, MistakesAreErrorsWithTheirLine) {
  EXPECT_THAT(error_of("stages_us: {router: 1}\nnoice: {}"), HasSubstr("x.yaml:2"));
  EXPECT_THAT(error_of("noice: {}"), HasSubstr("'noise'"));
  EXPECT_THAT(error_of("stages_us: {ffn: 1}"), HasSubstr("unknown key"));
  EXPECT_THAT(error_of("stages_us: {router: -1}"), HasSubstr("outside 0"));
  EXPECT_THAT(error_of("ffn: {flop_per_s: 0}"), HasSubstr("outside 1"));
  EXPECT_THAT(error_of("exchange: {alpha_us: 3}"), HasSubstr("unknown key"));
  EXPECT_THAT(error_of("noise: {relative: 1.5}"), HasSubstr("outside 0 to 1"));
  EXPECT_THAT(error_of("ranks: {5: {}}"), HasSubstr("'slowdown' is missing"));
  EXPECT_THAT(error_of("ranks: {five: {slowdown: 2}}"), HasSubstr("'five' is not the number"));
  EXPECT_THAT(error_of("ranks: [1]"), HasSubstr("expected a map such as"));
  EXPECT_THAT(error_of("links: {5: {extra_us: 1}}"), HasSubstr("does not name a link"));
  EXPECT_THAT(error_of("links: {5-5: {extra_us: 1}}"), HasSubstr("two ends"));
  EXPECT_THAT(error_of("links: {5-6: {extra_us: 1}, 6-5: {extra_us: 1}}"), HasSubstr("twice"));
}

}  // namespace
}  // namespace epsweep
