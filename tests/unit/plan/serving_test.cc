// Hardware, serving and objective of an experiment: what is read and what is refused.
#include "plan/serving.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/weight_format.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kMinimal =
    "name: t\n"
    "model: {name: m, hidden_dim: 8, ffn_dim: 4, num_experts: 8, top_k: 2, num_moe_layers: 1}\n"
    "ep_sizes: [1, 2]\n"
    "concurrency: {fixed_global: [16]}\n"
    "routing: uniform\n";

SweepSpec read(const std::string& lines) {
  return read_sweep_spec(kMinimal + lines, "dir/x.yaml", {},
                         {.models_dir = EPSWEEP_SOURCE_DIR "/configs/models",
                          .catalogs = {.distributions = {{"uniform", "", {}}},
                                       .placements = {{"contiguous", SlotRule::one_per_expert}},
                                       .transports = {"pairwise"},
                                       .grouped_gemms = {"onednn"},
                                       .default_transport = "pairwise",
                                       .default_grouped_gemm = "onednn"},
                          .hardware_dir = EPSWEEP_SOURCE_DIR "/configs/hardware"});
}

std::string error_of(const std::string& lines) {
  try {
    read(lines);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Serving, FillsInDefaultsAndReachesEveryPoint) {
  const SweepSpec spec = read("hardware: h200\nserving: {}\n");
  ASSERT_TRUE(spec.serving.has_value());
  EXPECT_EQ(spec.serving->context_tokens, 4096);
  EXPECT_EQ(spec.serving->tokens_per_sequence(), 1);
  EXPECT_EQ(spec.serving->memory_fraction, 0.9);
  EXPECT_EQ(spec.hardware->memory_bytes, 141'000'000'000);
  for (const SweepPoint& point : make_plan(spec).points) {
    EXPECT_EQ(point.serving->context_tokens, 4096);
    EXPECT_EQ(point.hardware->name, "h200");
  }
  EXPECT_FALSE(read("").serving.has_value());
  EXPECT_TRUE(point_axes_json(make_plan(read("")).points[0])["serving"].is_null());
}

TEST(Serving, ReadsEveryKey) {
  const SweepSpec spec = read(
      "hardware: {base: b200, name: mine, memory_gb: 192}\nlatency_objective_us: 500\n"
      "serving: {context_tokens: 100, draft_tokens: 3, memory_fraction: 1, kv_dtype: fp8, "
      "weight_dtype: nvfp4, non_expert_weight_dtype: fp8, reserve_gib: 1.5}\n");
  EXPECT_EQ(spec.hardware->name, "mine");
  EXPECT_EQ(spec.hardware->memory_bytes, 192'000'000'000);
  EXPECT_EQ(spec.hardware->peak.fp4_tflops, 9000);
  EXPECT_EQ(spec.serving->tokens_per_sequence(), 4);
  EXPECT_EQ(spec.serving->kv_dtype, KvDType::fp8);
  EXPECT_EQ(spec.serving->reserve_bytes, 3LL << 29);
  EXPECT_EQ(spec.latency_objective_us, 500);
  EXPECT_EQ(sweep_spec_json(spec)["serving"]["weight_dtype"], "nvfp4");
}

// What changes a stop changes the point.
TEST(Serving, IsPartOfThePointsIdentity) {
  const auto id = [](const std::string& lines) {
    return point_id(make_plan(read(lines)).points[0]);
  };
  EXPECT_NE(id("hardware: h200\nserving: {}\n"), id(""));
  EXPECT_NE(id("hardware: h200\nserving: {}\n"), id("hardware: b200\nserving: {}\n"));
  EXPECT_NE(id("hardware: h200\n"), id("hardware: {base: h200, memory_gb: 140}\n"));
  EXPECT_NE(id("hardware: h200\nserving: {}\n"),
            id("hardware: h200\nserving: {context_tokens: 8192}\n"));
}

TEST(Serving, RefusesBadInputWithPlaceAndAdvice) {
  struct Fault {
    const char *lines, *place, *part;
  };
  const std::string h = "hardware: h200\n";
  const Fault faults[] = {
      {"hardware: h2000\n", "x.yaml:6: hardware:", "no hardware 'h2000' (nearest: 'h200')"},
      {"hardware: {base: nope}\n", "x.yaml:6: hardware.base:", "known: a100-80gb"},
      {"serving: {}\n", "x.yaml:6: serving:", "needs 'hardware'"},
      {"hardware: this-machine\nserving: {}\n",
       "x.yaml:7: serving:", "this-machine states no memory"},
      {"hardware: {name: x}\nserving: {}\n", "x.yaml:7: serving:", "hardware x states no memory"},
      {"hardware: h200\nserving: {memory_fraction: -0.5}\n",
       "x.yaml:7: serving.memory_fraction:", "-0.5 is outside"},
      {"hardware: h200\nserving: {memory_fraction: 0}\n",
       "x.yaml:7: serving.memory_fraction:", "0 is outside"},
      {"hardware: h200\nserving: {memory_fraction: 1.1}\n",
       "x.yaml:7: serving.memory_fraction:", "1.1 is outside 0.001 to 1"},
      {"hardware: h200\nserving: {context_tokens: 0}\n",
       "x.yaml:7: serving.context_tokens:", "0 is outside 1"},
      {"hardware: h200\nserving: {draft_tokens: -1}\n",
       "x.yaml:7: serving.draft_tokens:", "-1 is outside 0"},
      {"hardware: h200\nserving: {kv_dtype: fp4}\n",
       "x.yaml:7: serving.kv_dtype:", "not one of: bf16, fp8"},
      {"hardware: h200\nserving: {weight_dtype: bf8}\n",
       "x.yaml:7: serving.weight_dtype:", "as_published"},
      {"hardware: h200\nserving: {reserve_gib: -1}\n",
       "x.yaml:7: serving.reserve_gib:", "-1 is outside 0"},
      {"hardware: h200\nserving: {contxt_tokens: 1}\n",
       "x.yaml:7: serving.contxt_tokens:", "nearest valid key: 'context_tokens'"},
      {"latency_objective_us: 0\n", "x.yaml:6: latency_objective_us:", "0 is outside"},
      {"context_tokens: 4096\n", "x.yaml:6: context_tokens:", "belongs under 'serving'"},
  };
  for (const Fault& fault : faults) {
    EXPECT_THAT(error_of(fault.lines), AllOf(HasSubstr(fault.place), HasSubstr(fault.part)))
        << fault.lines;
  }
}

TEST(WeightFormat, CountsTheScalesOfFourBitFormats) {
  // 64 weights: 32 bytes and 2 scales of a byte; 32 and 4 of a byte; 32 and 2 of 2 bytes.
  EXPECT_EQ(bytes_of_weights(64, *find_weight_format("mxfp4")), 34);
  EXPECT_EQ(bytes_of_weights(64, *find_weight_format("nvfp4")), 36);
  EXPECT_EQ(bytes_of_weights(64, *find_weight_format("int4")), 36);
  EXPECT_EQ(bytes_of_weights(65, *find_weight_format("mxfp4")), 35);  // rounded up
  EXPECT_EQ(bytes_of_weights(7, *find_weight_format("bf16")), 14);
  EXPECT_EQ(bytes_of_weights(INT64_MAX / 17, *find_weight_format("fp8")), INT64_MAX / 17);
  EXPECT_FALSE(find_weight_format("awq").has_value());
}

}  // namespace
}  // namespace epsweep
