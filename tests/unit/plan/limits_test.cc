#include "plan/limits.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "plan/ladder.h"
#include "plan/plan.h"
#include "plan/sweep_spec.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// 58 MoE layers of 61.
const std::string kExperiment =
    "name: x\n"
    "model: {name: m, hidden_dim: 64, ffn_dim: 32, num_experts: 8, top_k: 2, num_moe_layers: 58}\n"
    "ep_sizes: [2]\n"
    "concurrency: {fixed_global: [64, 8, 16], fixed_per_rank: {from: 2, to: 8, factor: 2}}\n"
    "routing: uniform\n";

SpecSources sources() {
  return {.models_dir = EPSWEEP_SOURCE_DIR "/configs/models",
          .catalogs = {.distributions = {{"uniform", "", {}}},
                       .placements = {{"contiguous", SlotRule::one_per_expert}},
                       .transports = {"pairwise"},
                       .grouped_gemms = {"onednn"},
                       .default_transport = "pairwise",
                       .default_grouped_gemm = "onednn"},
          .hardware_dir = EPSWEEP_SOURCE_DIR "/configs/hardware"};
}

SweepSpec spec_of(const std::string& more) {
  return read_sweep_spec(kExperiment + more, "x.yaml", {}, sources());
}

std::string error_of(const std::string& more) {
  try {
    spec_of(more);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Limits, DefaultsAreTheModelsLayersAndTenPercent) {
  EXPECT_FALSE(spec_of("").limits.has_value());
  const Limits limits = spec_of("limits: {tpot_ms: 50}\n").limits.value();
  EXPECT_EQ(limits.layers, 58);
  EXPECT_EQ(limits.percentile, Percentile::p50);
  EXPECT_EQ(limits.other_layer_us, 0);
  EXPECT_EQ(limits.resolution, 0.1);
  EXPECT_EQ(limits.objective_s(), 0.05);
  EXPECT_FALSE(spec_of("limits: {resolution: 0.5}\n").limits->objective_s().has_value());
}

// 20 layers of 400 us and 100 us beside: 10 ms, so 100 tokens per second.
TEST(Limits, ATokenTakesAllLayersAndWhatTheyDoBeside) {
  const Limits limits =
      spec_of("limits: {tokens_per_s_per_user: 80, layers: 20, other_layer_us: 100}\n")
          .limits.value();
  EXPECT_DOUBLE_EQ(tpot_s(limits, 400e-6), 0.01);
  EXPECT_DOUBLE_EQ(*limits.objective_s(), 0.0125);
  EXPECT_DOUBLE_EQ(*layer_objective_s(limits), 525e-6);
  EXPECT_EQ(limits_json(limits)["tokens_per_s_per_user"], 80);
  EXPECT_TRUE(limits_json(limits)["tpot_ms"].is_null());
  EXPECT_TRUE(limits_json(std::nullopt).is_null());
}

TEST(Limits, AllContradictionsAreInOneMessage) {
  const std::string error = error_of(
      "iterations: 20\n"
      "latency_objective_us: 500\n"
      "limits: {tpot_ms: 5, tokens_per_s_per_user: 20, percentile: p99, other_layer_us: 100}\n");
  EXPECT_THAT(error, AllOf(HasSubstr("x.yaml:8: limits: "), HasSubstr("one objective said twice"),
                           HasSubstr("latency_objective_us is an objective beside 'limits'"),
                           HasSubstr("percentile p99 needs iterations: 100 or more, there are 20"),
                           HasSubstr("58 layers of other_layer_us 100 take 5.8 ms")));
}

TEST(Limits, PercentilesNeedTheirIterations) {
  EXPECT_EQ(error_of("iterations: 1\nlimits: {percentile: p50}\n"), "");
  EXPECT_THAT(error_of("iterations: 9\nlimits: {percentile: p90}\n"), HasSubstr("10 or more"));
  EXPECT_EQ(error_of("iterations: 10\nlimits: {percentile: p90}\n"), "");
  EXPECT_THAT(error_of("iterations: 99\nlimits: {percentile: p99}\n"), HasSubstr("100 or more"));
  EXPECT_EQ(error_of("iterations: 100\nlimits: {percentile: p99}\n"), "");
}

TEST(Limits, WhatServingHoldsIsSaidThere) {
  EXPECT_THAT(error_of("limits: {context_tokens: 4096}\n"), HasSubstr("serving.context_tokens"));
  EXPECT_THAT(error_of("limits: {memory_reserve: 4}\n"), HasSubstr("serving.reserve_gib"));
  EXPECT_THAT(error_of("limits: {tpot: 50}\n"), HasSubstr("tpot_ms"));
  EXPECT_THAT(error_of("tpot_ms: 50\n"), HasSubstr("it belongs under 'limits'"));
  EXPECT_NE(error_of("limits: {resolution: 0}\n"), "");
  EXPECT_NE(error_of("limits: {tpot_ms: -1}\n"), "");
  EXPECT_NE(error_of("limits: {percentile: p95}\n"), "");
}

TEST(Limits, LoadsAreClimbedWhateverTheirOrderInTheFile) {
  std::vector<std::int64_t> tokens;
  for (const SweepPoint& point : make_plan(spec_of("limits: {tpot_ms: 50}\n")).points) {
    tokens.push_back(point.concurrency.tokens);
    EXPECT_EQ(point.limits->layers, 58);
  }
  EXPECT_THAT(tokens, testing::ElementsAre(8, 16, 64, 2, 4, 8));
}

// 10 layers of (layer + 50) us, at most 1 ms.
TEST(Limits, TheObjectiveIsOfTheWholeToken) {
  SweepPoint point;
  point.model.name = "m";
  point.concurrency.tokens = 64;
  point.limits = Limits{.tpot_ms = 1.0,
                        .tokens_per_s_per_user = {},
                        .percentile = Percentile::p90,
                        .other_layer_us = 50,
                        .layers = 10};
  EXPECT_EQ(objective_percentile(point), Percentile::p90);
  EXPECT_FALSE(latency_stop(point, 49.9).has_value());
  const auto stop = latency_stop(point, 75);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->kind, StopKind::latency_objective);
  EXPECT_EQ(stop->at_tokens, 64);
  EXPECT_EQ(stop->reason, "layer p90 75.0 us makes a TPOT of 1.25 ms, the objective is 1.00 ms");
  point.limits->tpot_ms.reset();
  EXPECT_FALSE(latency_stop(point, 1e9).has_value());
}

}  // namespace
}  // namespace epsweep
