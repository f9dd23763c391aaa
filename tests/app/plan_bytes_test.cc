// The bytes of a plan as its user sees them.
#include <gmock/gmock.h>

#include "support/program.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// hidden_dim 7168: 14336 B of bf16 in a row.
const std::string kShapeS =
    "model: {name: S, hidden_dim: 7168, ffn_dim: 2048, num_experts: 256, top_k: 8, "
    "num_moe_layers: 58}";

Json plan_points(const std::vector<std::string>& changes) {
  const TempDir dir;
  const ProgramResult result =
      run_program("plan --json " + dir.write("x.yaml", toy_experiment(changes)));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return parse_json(result.out, "plan")["points"];
}

// Trace T of four ranks with two tokens each: r0 {0,1} {2,3}, r1 {0,4} {4,6}, r2 {6,7} {0,2},
// r3 {5,7} {1,3}; rows of 1024 bf16 values are 2048 B.
Json trace_t_bytes(const std::string& topology) {
  const TempDir dir;
  dir.write("t.jsonl",
            "{\"experts\": [0, 1]}\n{\"experts\": [2, 3]}\n{\"experts\": [0, 4]}\n"
            "{\"experts\": [4, 6]}\n{\"experts\": [6, 7]}\n{\"experts\": [0, 2]}\n"
            "{\"experts\": [5, 7]}\n{\"experts\": [1, 3]}\n");
  std::vector<std::string> changes = {
      "model: {name: T, hidden_dim: 1024, ffn_dim: 64, num_experts: 8, top_k: 2, "
      "num_moe_layers: 1}",
      "ep_sizes: [4]", "concurrency: {fixed_global: [8]}",
      "routing: {distribution: recorded_trace, trace_file: t.jsonl}"};
  if (!topology.empty()) changes.push_back("topology: " + topology);
  const ProgramResult result =
      run_program("plan --json " + dir.write("x.yaml", toy_experiment(changes)));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return parse_json(result.out, "plan")["points"][0]["bytes"];
}

TEST(PlanBytes, CaseC22CyclicHosts) {
  const Json bytes = trace_t_bytes("{host_of_rank: [0, 1, 0, 1]}");
  EXPECT_EQ(bytes["places"], "declared");
  const Json& dispatch = bytes["dispatch"];
  EXPECT_EQ(dispatch["row_bytes"], 2048);
  EXPECT_EQ(dispatch["b_self_copies"], 2);
  EXPECT_EQ(dispatch["b_intra_copies"], 3);
  EXPECT_EQ(dispatch["b_inter_copies"], 8);
  EXPECT_EQ(dispatch["d_total_copies"], 11);
  EXPECT_EQ(dispatch["e_total_copies"], 7);
  EXPECT_EQ(dispatch["e_total_bytes"], 14336);
  // A recording says nothing about tokens it does not have.
  EXPECT_TRUE(bytes["per_token"]["expected"].is_null());
  EXPECT_TRUE(bytes["per_token"]["expected_method"].is_null());
}

TEST(PlanBytes, CaseC23UnevenHosts) {
  const Json dispatch = trace_t_bytes("{host_of_rank: [0, 0, 0, 1]}")["dispatch"];
  EXPECT_EQ(dispatch["b_self_copies"], 2);
  EXPECT_EQ(dispatch["b_intra_copies"], 6);
  EXPECT_EQ(dispatch["b_inter_copies"], 5);
}

// Trace T by hand: two experts a rank.
TEST(PlanBytes, SendMatrixOfGroupsUpTo32Ranks) {
  EXPECT_EQ(trace_t_bytes("")["send_matrix"],
            Json::parse("[[2, 2, 0, 0], [1, 0, 2, 1], [1, 1, 0, 2], [1, 1, 1, 1]]"));
  const Json wide =
      plan_points({kShapeS, "ep_sizes: [32, 64]", "concurrency: {fixed_global: [64]}"});
  EXPECT_EQ(wide[0]["bytes"]["send_matrix"].size(), 32U);
  EXPECT_TRUE(wide[1]["bytes"]["send_matrix"].is_null());
}

// 32 experts a rank of 3 * 7168 * 2048 weights, of two bytes or one; rows of 7168 values stay bf16.
TEST(PlanBytes, Fp8HalvesWeightsAndNotRows) {
  const Json points = plan_points({kShapeS, "ep_sizes: [8]", "concurrency: {fixed_global: [64]}",
                                   "dtype: [bf16, fp8, fp8_block128]"});
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0]["weight_bytes_per_rank"], 32 * 44'040'192LL * 2);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(points[i]["bytes"]["dispatch"]["row_bytes"], 14336);
    if (i > 0) {
      EXPECT_EQ(points[i]["weight_bytes_per_rank"], 32 * 44'040'192LL);
    }
  }
  // Scales are memory too: two of them an expert, or 32 * 56 + 56 * 16.
  const auto memory = [&](std::size_t i) {
    return points[i]["memory_bytes_per_rank"].get<std::int64_t>();
  };
  EXPECT_EQ(memory(0) - memory(1), 32 * (44'040'192LL - 2 * 4));
  EXPECT_EQ(memory(2) - memory(1), 32 * 4 * (32 * 56 + 56 * 16 - 2));
}

TEST(PlanBytes, NothingDeclaredNothingGuessed) {
  const Json bytes = trace_t_bytes("");
  EXPECT_TRUE(bytes["places"].is_null());
  EXPECT_EQ(bytes["dispatch"]["d_total_copies"], 11);
  EXPECT_TRUE(bytes["dispatch"]["e_total_copies"].is_null());
  EXPECT_TRUE(bytes["per_token"]["counted"]["c"].is_null());
  EXPECT_EQ(bytes["per_token"]["counted"]["d"], 11 / 8.0);
}

// Eight host names and one NVLink domain, then eight domains.
TEST(PlanBytes, CaseC24TheDomainDecidesAndNotTheHost) {
  const auto e_bytes = [](const std::string& topology) {
    return plan_points({kShapeS, "ep_sizes: [32]", "concurrency: {fixed_global: [256]}",
                        "topology: " + topology})[0]["bytes"]["dispatch"]["e_total_bytes"];
  };
  EXPECT_EQ(e_bytes("{hosts: 8, ranks_per_host: 4, domain_size: 32}"), 0);
  EXPECT_GT(e_bytes("{hosts: 8, ranks_per_host: 4, domain_size: 4}"), 0);
  EXPECT_GT(e_bytes("{hosts: 8, ranks_per_host: 4}"), 0);
}

TEST(PlanBytes, CountedStandsBesideExpected) {
  const Json points =
      plan_points({kShapeS, "ep_sizes: [8]", "concurrency: {fixed_global: [4096]}",
                   "routing: [uniform, lognormal_blocks]", "topology: {ranks_per_host: 4}"});
  const Json& uniform = points[0]["bytes"]["per_token"];
  EXPECT_EQ(uniform["expected_method"], "closed_form");
  EXPECT_TRUE(uniform["expected_sample_tokens"].is_null());
  // 5.2947 ranks, 7/8 of them remote; 1 - C(128, 8) / C(256, 8) of the tokens reach a domain of 128
  // experts: 2 * 0.99651 domains.
  EXPECT_NEAR(uniform["expected"]["b"].get<double>(), 5.2947, 1e-3);
  EXPECT_NEAR(uniform["expected"]["d"].get<double>(), 5.2947 * 7 / 8, 1e-3);
  EXPECT_NEAR(uniform["expected"]["c"].get<double>(), 1.9930, 1e-3);
  EXPECT_NEAR(uniform["expected"]["e"].get<double>(), 0.9965, 1e-3);
  for (const char* letter : {"a_self", "b", "c", "d", "e", "b_intra", "b_inter"}) {
    EXPECT_NEAR(uniform["counted"][letter].get<double>(), uniform["expected"][letter].get<double>(),
                0.05)
        << letter;
  }
  const Json& skewed = points[1]["bytes"]["per_token"];
  EXPECT_EQ(skewed["expected_method"], "monte_carlo");
  EXPECT_EQ(skewed["expected_sample_tokens"], 4096);
  EXPECT_NEAR(skewed["counted"]["d"].get<double>(), skewed["expected"]["d"].get<double>(), 0.06);
  EXPECT_NE(skewed["counted"]["d"], skewed["expected"]["d"]);  // of other tokens
}

TEST(PlanBytes, WhatTheRoutingWouldCostInOtherDtypes) {
  const Json bytes = plan_points({kShapeS, "ep_sizes: [8]"})[0]["bytes"];
  const Json& by_dtype = bytes["per_token_by_dtype"];
  const auto copy_bytes = [&by_dtype](const char* dtype) {
    const Json& copy = by_dtype[dtype]["copy"];
    return copy["payload_bytes"].get<int>() + copy["scale_bytes"].get<int>();
  };
  EXPECT_EQ(copy_bytes("bf16"), 14336);
  EXPECT_EQ(copy_bytes("fp8"), 7392);
  EXPECT_EQ(copy_bytes("mxfp8"), 7392);
  EXPECT_EQ(copy_bytes("nvfp4"), 4032);
  EXPECT_EQ(by_dtype["bf16"]["a"]["payload_bytes"], 8 * 14336.0);
  EXPECT_EQ(by_dtype["bf16"]["a"]["metadata_bytes"], 8 * 8.0);
  const double b = bytes["per_token"]["counted"]["b"].get<double>();
  EXPECT_DOUBLE_EQ(by_dtype["fp8"]["b"]["metadata_bytes"].get<double>(), b * 64);
  EXPECT_DOUBLE_EQ(by_dtype["fp8"]["b"]["scale_bytes"].get<double>(), b * 224);
}

// 256 * (1 - (1 - 8/256)^C) of uniform routing alone.
TEST(PlanBytes, ActiveExpertsHaveAnExpectation) {
  const Json points = plan_points({kShapeS, "ep_sizes: [8]", "concurrency: {fixed_global: [8, 64]}",
                                   "routing: [uniform, lognormal_blocks]"});
  EXPECT_NEAR(points[0]["expected_active_experts"].get<double>(), 57.4208, 1e-3);
  EXPECT_NEAR(points[0]["active_experts"].get<double>(), 57.4208, 8);
  EXPECT_TRUE(points[1]["expected_active_experts"].is_null());
  EXPECT_NEAR(points[2]["expected_active_experts"].get<double>(), 222.4425, 1e-3);
}

TEST(PlanBytes, TheTableExplainsItself) {
  const TempDir dir;
  const ProgramResult result =
      run_program("plan " + dir.write("x.yaml", toy_experiment({"topology: {ranks_per_host: 1}"})));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("\nBytes, concurrency"), HasSubstr("closed_form"),
                                HasSubstr("E per distinct remote domain")));
}

// No tokens: nothing per token, and no NaN.
TEST(PlanBytes, WithoutTokensThereIsNothingPerToken) {
  const Json bytes = plan_points({"concurrency: {fixed_global: [0]}"})[0]["bytes"];
  EXPECT_TRUE(bytes["per_token"]["counted"].is_null());
  EXPECT_TRUE(bytes["per_token"]["expected"].is_null());
  EXPECT_TRUE(bytes["per_token_by_dtype"].is_null());
  EXPECT_EQ(bytes["dispatch"]["a_total_bytes"], 0);
}

}  // namespace
}  // namespace epsweep
