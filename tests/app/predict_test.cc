// `predict` as a user starts it: calibrated on a simulation, whose wider sizes can be looked up.
#include <filesystem>

#include <gmock/gmock.h>

#include "base/text.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

constexpr const char* kModel =
    "model: {name: m, hidden_dim: 64, ffn_dim: 32, num_experts: 32, top_k: 4, num_moe_layers: 1}";
// Hosts of two ranks, so EP4 and EP8 both leave theirs; weights of an expert (12,288 bytes) take
// 12.3 us, which no row count here exceeds.
constexpr const char* kSim =
    "sim: {stages_us: {router: 7, permute: 3}, ffn: {flop_per_s: 1e15, weight_bytes_per_s: 1e9}, "
    "exchange: {intra_alpha_us: 2, intra_bytes_per_s: 1e9, inter_alpha_us: 20, inter_bytes_per_s: "
    "1e8}}";

std::string experiment(const std::vector<std::string>& changes) {
  std::vector<std::string> lines = {kModel, "routing: balanced", "iterations: 8",
                                    "concurrency: {fixed_global: [64, 256]}"};
  lines.insert(lines.end(), changes.begin(), changes.end());
  return toy_experiment(lines);
}

const std::string kTopology = "topology: {ranks_per_host: 2}";

struct Calibrated : testing::Test {
  void SetUp() override {
    const std::string file =
        dir.write("cal.yaml", experiment({"ep_sizes: [4, 8]", kTopology, kSim}));
    const ProgramResult run =
        run_program("run " + file + " --backend sim --ranks 8 --out " + dir.path("cal"));
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }

  ProgramResult predict(const std::vector<std::string>& changes, const std::string& options = "") {
    return run_program("predict " + dir.write("x.yaml", experiment(changes)) + " --calibration " +
                       dir.path("cal") + " --out " + dir.path("out") + " " + options);
  }

  void expect_refused(const ProgramResult& result, const std::string& message) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_FALSE(std::filesystem::exists(dir.path("out")));
  }

  TempDir dir;
};

double p50(const Json& record, const std::string& stage) {
  return record["stages"][stage]["slowest_us"]["p50"].get<double>();
}

TEST_F(Calibrated, WiderSizesAreWhatTheSimulationShowsOfThem) {
  const std::vector<std::string> wide = {"ep_sizes: [16, 32]", kTopology};
  const ProgramResult result = predict(wide);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("4 points: 4 predicted"));
  EXPECT_THAT(result.out, HasSubstr("P predicted from calibration " + dir.path("cal") +
                                    " (simulated itself): nothing was measured or checked"));
  EXPECT_THAT(result.out, HasSubstr("Intervals of the predictions"));
  std::vector<std::string> simulated = wide;
  simulated.push_back(kSim);
  ASSERT_EQ(run_program("run " + dir.write("sim.yaml", experiment(simulated)) +
                        " --backend sim --out " + dir.path("sim"))
                .exit_code,
            0);
  const std::vector<Json> predicted = records_of(dir.path("out"));
  const std::vector<Json> truth = records_of(dir.path("sim"));
  ASSERT_EQ(predicted.size(), 4U);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const Json& record = predicted[i];
    EXPECT_EQ(record["state"], "predicted");
    EXPECT_EQ(record["check"]["verdict"], "not_run");
    EXPECT_EQ(record["routing_checksum"], truth[i]["routing_checksum"]);
    for (const char* stage : {"router", "permute", "unpermute", "expert_ffn"}) {
      EXPECT_NEAR(p50(record, stage), p50(truth[i], stage), 1e-3 * p50(truth[i], stage)) << stage;
    }
    for (const char* stage : {"dispatch", "combine"}) {
      EXPECT_NEAR(p50(record, stage), p50(truth[i], stage), 0.05 * p50(truth[i], stage)) << stage;
    }
    const Json& layer = record["prediction"]["layer"];
    EXPECT_NEAR(layer["predicted_us"].get<double>(),
                record["layer"]["slowest_us"]["p50"].get<double>(), 1e-9);
    EXPECT_LT(layer["low_us"], layer["predicted_us"]);
    EXPECT_GT(layer["high_us"], layer["predicted_us"]);
  }
}

// One doubling beyond EP8, then two: 5 % more each. EP32 is one expert a rank: two from 4.
TEST_F(Calibrated, IntervalsWidenByDoubling) {
  ASSERT_EQ(
      predict({"ep_sizes: [16, 32]", "concurrency: {fixed_global: [64]}", kTopology}).exit_code, 0);
  const std::vector<Json> records = records_of(dir.path("out"));
  double above = 1;
  for (const Json& record : records) {
    above *= 1.05;
    const Json& dispatch = record["prediction"]["stages"]["dispatch"];
    EXPECT_NEAR(dispatch["high_us"].get<double>() / dispatch["predicted_us"].get<double>(), above,
                1e-6);
  }
  EXPECT_EQ(records.at(1)["prediction"]["exchange_doublings"], 2.0);
  EXPECT_EQ(records.at(1)["prediction"]["ffn_doublings"], 2.0);
  EXPECT_THAT(records.at(1)["prediction"]["ffn_basis"].get<std::string>(),
              HasSubstr("other slots"));
}

TEST_F(Calibrated, WhatWasNotCalibratedIsRefused) {
  expect_refused(predict({"ep_sizes: [8]", "topology: {ranks_per_host: 8}"}),
                 "EP8 stays inside a domain, and the calibration (EP4 and EP8) only has groups "
                 "that span several");
  expect_refused(predict({"ep_sizes: [16]", kTopology, "dtype: fp32"}), "its points are of dtype");
  expect_refused(predict({"ep_sizes: [16]", kTopology,
                          "model: {name: other, hidden_dim: 128, ffn_dim: 32, num_experts: 32, "
                          "top_k: 4, num_moe_layers: 1}"}),
                 "its points are of model m");
  expect_refused(predict({"ep_sizes: [16]", kTopology, "hardware: h200"}),
                 "the experiment is about hardware h200, calibration");
  expect_refused(predict({"ep_sizes: [16]", kTopology, kSim}), "leave `sim` out");
  expect_refused(predict({"ep_sizes: [1]", kTopology}, "--ranks 2"), "has no EP1");
}

// What a rank of EP32 computes, one expert with 8 or 32 rows, comes from a run of just that at EP1.
TEST_F(Calibrated, ExpertFfnsOfOneRankFillTheTable) {
  const std::string ffn =
      experiment({"ep_sizes: [1]", "concurrency: {fixed_global: [8, 64]}", kSim,
                  "model: {name: shard, hidden_dim: 64, ffn_dim: 32, num_experts: 1, top_k: 1, "
                  "num_moe_layers: 1}"});
  ASSERT_EQ(
      run_program("run " + dir.write("ffn.yaml", ffn) + " --backend sim --out " + dir.path("ffn"))
          .exit_code,
      0);
  const ProgramResult result =
      predict({"ep_sizes: [32]", kTopology}, "--ffn-calibration " + dir.path("ffn"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(", FFN of " + dir.path("ffn")));
  for (const Json& record : records_of(dir.path("out"))) {
    EXPECT_EQ(record["prediction"]["ffn_basis"], "inside the table");
    EXPECT_EQ(record["prediction"]["ffn_doublings"], 0.0);
    EXPECT_NEAR(p50(record, "expert_ffn"), 10 + 12.288, 1e-6);
  }
}

// A prediction tells nothing that its calibration did not.
TEST_F(Calibrated, PredictionsCalibrateNothing) {
  ASSERT_EQ(predict({"ep_sizes: [16]", kTopology}).exit_code, 0);
  const ProgramResult again = run_program("predict " + dir.path("x.yaml") + " --calibration " +
                                          dir.path("out") + " --out " + dir.path("again"));
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("no point of it has times"));
}

TEST(Predict, OfHardwareAloneSaysSo) {
  const TempDir dir;
  const std::string file = dir.write("x.yaml", experiment({"ep_sizes: [16]"}));
  const ProgramResult result =
      run_program("predict " + file + " --hardware h200 --out " + dir.path("out"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("P predicted from hardware h200 alone, nothing calibrated"));
  const Json record = records_of(dir.path("out")).at(0);
  EXPECT_EQ(record["state"], "predicted");
  EXPECT_TRUE(record["prediction"]["layer"]["low_us"].is_null());
  EXPECT_EQ(record["point"]["hardware"]["name"], "h200");
  EXPECT_EQ(run_program("predict " + file).exit_code, 2);
}

}  // namespace
}  // namespace epsweep
