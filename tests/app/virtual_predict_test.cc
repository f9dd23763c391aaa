// `predict --virtual-ep` as a user starts it, on one process and on two ranks.
#include <algorithm>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>

#include "app/virtual_ranks.h"
#include "report/result_file.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kModel =
    "model: {name: m, hidden_dim: 64, ffn_dim: 32, num_experts: 32, top_k: 4, num_moe_layers: 1}";
constexpr const char* kSim =
    "sim: {exchange: {intra_alpha_us: 2, intra_bytes_per_s: 1e9, inter_alpha_us: 20, "
    "inter_bytes_per_s: 1e8}}";
const std::string kTopology = "topology: {ranks_per_host: 2}";

std::string experiment(const std::vector<std::string>& changes) {
  std::vector<std::string> lines = {kModel, kTopology, "ep_sizes: [16]",
                                    "concurrency: {fixed_global: [64]}"};
  lines.insert(lines.end(), changes.begin(), changes.end());
  return toy_experiment(lines);
}

struct VirtualEp : testing::Test {
  // EP4 and EP8 of a simulated launch that names what real ranks use.
  void calibrate(const std::vector<std::string>& changes = {}) {
    std::vector<std::string> lines = {"ep_sizes: [4, 8]", kSim, "transport: [pairwise]",
                                      "concurrency: {fixed_global: [64, 256]}"};
    lines.insert(lines.end(), changes.begin(), changes.end());
    const ProgramResult run = run_program("run " + dir.write("cal.yaml", experiment(lines)) +
                                          " --backend sim --ranks 8 --out " + dir.path("cal"));
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  std::string arguments(const std::vector<std::string>& changes, const std::string& options) {
    return "predict " + dir.write("x.yaml", experiment(changes)) + " --out " + dir.path("out") +
           " " + options;
  }
  std::string calibrated(const std::string& options) {
    return "--calibration " + dir.path("cal") + " " + options;
  }
  void expect_refused(const ProgramResult& result, const std::string& message) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(dir.path("out")));
  }
  TempDir dir;
};

double us(const Json& record, const std::string& stage, const char* key = "predicted_us") {
  return record["prediction"]["stages"][stage][key].get<double>();
}

// By EP rank, of one layer.
std::map<int, std::int64_t> measured_rows(const Json& record) {
  std::map<int, std::int64_t> rows;
  for (const Json& shard : record["prediction"]["virtual"]["shards"]) {
    rows[shard["ep_rank"].get<int>()] = shard["expert_ffn"][0]["rows"].get<std::int64_t>();
  }
  return rows;
}

void expect_labelled(const Json& record) {
  EXPECT_EQ(record["state"], "predicted");
  EXPECT_EQ(record["prediction"]["label"], "measured compute + predicted exchange");
  EXPECT_EQ(record["check"]["verdict"], "not_run");
  for (const Json& shard : record["prediction"]["virtual"]["shards"]) {
    for (const Json& layer : shard["expert_ffn"]) {
      EXPECT_GT(layer["p50_us"], 0);
      EXPECT_LE(layer["low_us"], layer["p50_us"]);
      EXPECT_GE(layer["high_us"], layer["p50_us"]);
    }
  }
}

// All rows of the trace are there: those of shards that were measured are the record's own.
void expect_rows_of_trace(const Json& record) {
  const Json& of_rank = record["rows_per_rank"]["per_layer"][0];
  for (const auto& [ep_rank, rows] : measured_rows(record)) {
    EXPECT_EQ(of_rank[static_cast<std::size_t>(ep_rank)], rows) << ep_rank;
  }
}

void expect_stages_add_up(const Json& record) {
  double sum_us = 0;
  for (const auto& [name, stage] : record["prediction"]["stages"].items()) {
    EXPECT_GT(stage["predicted_us"], 0) << name;
    sum_us += stage["predicted_us"].get<double>();
  }
  EXPECT_NEAR(record["all_stages"]["slowest_us"]["p50"].get<double>(), sum_us, 1e-6 * sum_us);
}

TEST_F(VirtualEp, OneProcessMeasuresEveryRankOfAWideGroup) {
  for (const std::string unit : {"assignment", "rank"}) {
    std::filesystem::remove_all(dir.path("out"));
    const ProgramResult result = run_program(arguments(
        {"exchange_unit: " + unit}, "--hardware h200 --virtual-ep 16 --virtual-ranks all"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("V measured compute + predicted exchange: "));
    EXPECT_THAT(result.out, HasSubstr("hardware h200 alone, nothing calibrated"));
    EXPECT_THAT(result.out, HasSubstr("measured: all 16 ranks  measured compute + predicted"));
    EXPECT_THAT(result.out, Not(HasSubstr("P predicted")));
    const Json record = records_of(dir.path("out")).at(0);
    expect_labelled(record);
    expect_rows_of_trace(record);
    expect_stages_add_up(record);
    std::int64_t rows = 0;
    for (const auto& [rank, count] : measured_rows(record)) rows += count;
    EXPECT_EQ(measured_rows(record).size(), 16U);
    EXPECT_EQ(rows, 64 * 4);
    // The file says nothing of how exact its exchange is.
    EXPECT_TRUE(record["prediction"]["layer"]["low_us"].is_null());
    EXPECT_TRUE(record["prediction"]["stages"]["dispatch"]["low_us"].is_null());
    EXPECT_TRUE(record["prediction"]["stages"]["expert_ffn"]["low_us"].is_number());
  }
}

// Exchanges are those of a prediction without any measurement.
TEST_F(VirtualEp, TwoRanksMeasureAndTheCalibrationPredictsTheRest) {
  calibrate();
  const ProgramResult plain =
      run_program("predict " + dir.write("x.yaml", experiment({})) + " --calibration " +
                  dir.path("cal") + " --out " + dir.path("plain"));
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  const ProgramResult result =
      run_on_ranks(2, arguments({}, calibrated("--virtual-ep 16 --virtual-iterations 6")));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("compute on 2 x "));
  const Json record = records_of(dir.path("out")).at(0);
  expect_labelled(record);
  expect_rows_of_trace(record);
  expect_stages_add_up(record);
  EXPECT_EQ(record["prediction"]["virtual"]["present_ranks"], 2);
  EXPECT_EQ(record["prediction"]["virtual"]["iterations"], 3);  // the experiment's are fewer
  EXPECT_EQ(measured_rows(record).size(), 4U);
  const Json predicted = records_of(dir.path("plain")).at(0);
  EXPECT_EQ(record["routing_checksum"], predicted["routing_checksum"]);
  for (const char* stage : {"count_exchange", "dispatch", "combine"}) {
    for (const char* key : {"predicted_us", "low_us", "high_us"}) {
      EXPECT_NEAR(us(record, stage, key), us(predicted, stage, key), 1e-6) << stage << key;
    }
  }
  EXPECT_LT(record["prediction"]["layer"]["low_us"], record["prediction"]["layer"]["high_us"]);
  // The report of the stored run says it too.
  EXPECT_THAT(run_program("report " + dir.path("out")).out,
              HasSubstr("V measured compute + predicted exchange"));
  EXPECT_THAT(run_program("report --stages " + dir.path("out")).out,
              HasSubstr(", measured compute + predicted exchange"));
}

// Three ranks and four shards: two rounds, and each shard counts once. The heaviest and the
// lightest rank of the trace are among them.
TEST_F(VirtualEp, RoundsThatDoNotComeOutEvenCountEveryShardOnce) {
  const ProgramResult result =
      run_on_ranks(3, arguments({"layers: 2"}, "--hardware h200 --virtual-ep 32"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json record = records_of(dir.path("out")).at(0);
  expect_labelled(record);
  const auto rows = measured_rows(record);
  EXPECT_EQ(record["prediction"]["virtual"]["shards"].size(), 4U);
  EXPECT_EQ(rows.size(), 4U);
  std::int64_t most = 0;
  for (const Json& shard : record["prediction"]["virtual"]["shards"]) {
    ASSERT_EQ(shard["expert_ffn"].size(), 2U);
    for (const Json& layer : shard["expert_ffn"]) {
      most = std::max(most, layer["rows"].get<std::int64_t>());
    }
  }
  EXPECT_EQ(most, record["rows_per_rank"]["max"]);
  EXPECT_EQ(record["prediction"]["ffn_basis"],
            "measured: 4 of 32 ranks, others between them by rows");
}

// Exchanges of any kernel's run will do, as FFNs are not taken from it.
TEST_F(VirtualEp, TheCalibrationMayBeOfAnotherKernel) {
  calibrate({"grouped_gemm: [loop]"});
  const std::vector<std::string> kernel = {"grouped_gemm: [reference]"};
  const ProgramResult plain = run_program(arguments(kernel, calibrated("")));
  expect_refused(plain, "its points are of grouped_gemm loop");
  const ProgramResult result = run_program(arguments(kernel, calibrated("--virtual-ep 16")));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_labelled(records_of(dir.path("out")).at(0));
}

TEST_F(VirtualEp, OtherEpSizesAreLeftOutWithOneMessage) {
  const ProgramResult result = run_program(
      arguments({"ep_sizes: [4, 16, 8]"}, "--hardware h200 --virtual-ep 16 --virtual-ranks 1"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("--virtual-ep 16: other ep_sizes of the experiment are left out: 4, 8\n"));
  const std::vector<Json> records = records_of(dir.path("out"));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0]["point"]["ep_size"], 16);
  EXPECT_EQ(records[0]["prediction"]["virtual"]["shards"].size(), 1U);
}

// An expert of 3 * 2^32 parameters takes 24 GiB, 32 of them more than any machine has.
TEST_F(VirtualEp, AShardThatDoesNotFitIsAStopWithItsReason) {
  const ProgramResult result =
      run_on_ranks(2, arguments({"model: {name: big, hidden_dim: 65536, ffn_dim: 65536, "
                                 "num_experts: 64, top_k: 2, num_moe_layers: 1}"},
                                "--hardware h200 --virtual-ep 2"));
  EXPECT_EQ(result.exit_code, 4) << result.err;
  const Json record = records_of(dir.path("out")).at(0);
  EXPECT_EQ(record["state"], "stopped");
  EXPECT_THAT(record["reason"].get<std::string>(),
              HasSubstr("device_memory: the shard of EP rank"));
  EXPECT_THAT(record["reason"].get<std::string>(), HasSubstr(" short"));
  EXPECT_TRUE(record["prediction"].is_null());
}

TEST_F(VirtualEp, WhatMakesNoSenseIsRefused) {
  calibrate();
  const auto refused = [this](const std::string& options, const std::string& message,
                              const std::vector<std::string>& changes = {}) {
    const ProgramResult result = run_program(arguments(changes, calibrated(options)));
    expect_refused(result, message);
    if (result.err.starts_with("error: ")) {
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
  };
  refused("--virtual-ep 0", "--virtual-ep: Value 0 not in range");
  refused("--virtual-ep many", "--virtual-ep: Value many not in range");
  refused("--virtual-ep 16 --ffn-calibration x", "--ffn-calibration excludes --virtual-ep");
  refused("--virtual-ranks 3", "--virtual-ranks requires --virtual-ep");
  refused("--virtual-ep 16 --virtual-ranks 0", "--virtual-ranks 0: neither `all` nor a number");
  refused("--virtual-ep 16 --virtual-ranks 3x", "--virtual-ranks 3x: neither `all` nor a number");
  refused("--virtual-ep 16 --virtual-iterations 0", "--virtual-iterations: Value 0 not in range");
  refused("--virtual-ep 16 --backend sim", "--backend sim has none of");
  refused("--virtual-ep 16 --backend tpu", "there is no backend 'tpu'");
  refused("--virtual-ep 64", "--virtual-ep 64: ep_size 64 exceeds the 32 experts of m",
          {"ep_sizes: [4]"});
  refused("--virtual-ep 16", "leave `sim` out", {kSim});
  refused("--virtual-ep 16", "'cublaslt' is not one of", {"grouped_gemm: [cublaslt]"});
  refused("--virtual-ep 16", "its points are of dtype", {"dtype: fp32"});
  refused("--virtual-ep 2", "EP2 stays inside a domain, and the calibration (EP4 and EP8)",
          {"ep_sizes: [2]"});
}

TEST_F(VirtualEp, ACalibrationOfOtherRanksIsRefusedOnAllRanksAtOnce) {
  calibrate();
  Json run = read_run(dir.path("cal")).run;
  run.erase("simulated");
  dir.write("cal/run.json", run.dump());
  const ProgramResult result = run_on_ranks(2, arguments({}, calibrated("--virtual-ep 16")));
  expect_refused(result, "ran on 'virtual clock'");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(PlaceInRound, GivesEveryShardToOneRankAndKeepsTheOthersBusy) {
  std::vector<int> taken(5);
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const RoundPlace place = place_in_round(round, rank, 2, 5);
      taken.at(place.shard) += place.counts ? 1 : 0;
    }
  }
  EXPECT_EQ(taken, std::vector<int>(5, 1));
  const RoundPlace spare = place_in_round(2, 1, 2, 5);
  EXPECT_FALSE(spare.counts);
  EXPECT_EQ(spare.shard, 0U);
}

TEST(Help, NamesVirtualRanks) {
  const std::string help = run_program("predict --help").out;
  for (const char* option : {"--virtual-ep", "--virtual-ranks", "--virtual-iterations"}) {
    EXPECT_THAT(help, HasSubstr(option));
  }
}

}  // namespace
}  // namespace epsweep
