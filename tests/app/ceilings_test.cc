// Ceilings of real runs, and what is above them. Their values are nobody's business here.
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>

#include "base/text.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr const char* kMeasure = "ceilings: measure";

struct ToyRun {
  ProgramResult result;
  std::vector<Json> records;
  Json facts;
  std::string report;
};

ToyRun run_toy(int ranks, const std::vector<std::string>& changes) {
  const TempDir dir;
  ToyRun run;
  run.result = run_on_ranks(
      ranks, "run " + dir.write("x.yaml", toy_experiment(changes)) + " --out " + dir.path("out"));
  run.records = records_of(dir.path("out"));
  run.facts = parse_json(read_text_file(dir.path("out/run.json")), "run.json");
  run.report = run_program("report " + dir.path("out")).out;
  return run;
}

bool is_rate(const Json& value) {
  return value.is_number() && value.get<double>() > 0 && std::isfinite(value.get<double>());
}

TEST(Ceilings, AreMeasuredByAllRanksBeforeTheFirstPoint) {
  const ToyRun run =
      run_toy(2, {kMeasure, "dtype: [bf16, fp32]", "transport: [pairwise, alltoallv]"});
  // A rate of a toy may be beyond what a busy machine shows of its memory: that is 3, not wrong.
  EXPECT_THAT(run.result.exit_code, AnyOf(0, 3)) << run.result.err;
  const Json& ceilings = run.facts["ceilings"];
  ASSERT_THAT(ceilings["rates"], SizeIs(1));  // two ranks work, whatever the EP size
  const Json& rates = ceilings["rates"][0];
  EXPECT_THAT(rates["working_ranks"], ElementsAre(0, 1));
  ASSERT_THAT(rates["gemm"], SizeIs(2));
  for (const char* dtype : {"bf16", "fp32"}) {
    const Json& gemm = rates["gemm"][dtype];
    ASSERT_THAT(gemm["flop_per_s_of_rank"], SizeIs(2)) << dtype;
    for (const Json& rate : gemm["flop_per_s_of_rank"]) EXPECT_TRUE(is_rate(rate));
    EXPECT_LE(gemm["slowest_flop_per_s"].get<double>(), gemm["fastest_flop_per_s"].get<double>());
    EXPECT_EQ(gemm["kernel_of_rank"][1], "amx");
  }
  for (const char* key :
       {"read_bytes_per_s_of_rank", "copy_bytes_per_s_of_rank", "streamed_bytes_of_rank"}) {
    ASSERT_THAT(rates[key], SizeIs(2));
    for (const Json& rate : rates[key]) EXPECT_TRUE(is_rate(rate)) << key;
  }
  ASSERT_THAT(ceilings["exchange"], SizeIs(2));  // EP 1 exchanges nothing
  for (const Json& exchange : ceilings["exchange"]) {
    EXPECT_EQ(exchange["ep_size"], 2);
    EXPECT_TRUE(is_rate(exchange["count_exchange_s"]));
    // No line goes through times that other programs made up.
    const bool has_line = !exchange["beta_bytes_per_s"].is_null();
    EXPECT_EQ(exchange["alpha_s"].is_null(), !has_line);
    if (has_line) {
      EXPECT_TRUE(is_rate(exchange["beta_bytes_per_s"]));
      EXPECT_GE(exchange["alpha_s"].get<double>(), 0);
    }
    ASSERT_GE(exchange["ladder"].size(), 2U);
    for (const Json& rung : exchange["ladder"]) {
      EXPECT_TRUE(is_rate(rung["best_s"]));
      EXPECT_GE(rung["median_s"].get<double>(), rung["best_s"].get<double>());
    }
  }
  EXPECT_THAT(run.report, HasSubstr("\nCeilings, measured in this run"));
  EXPECT_THAT(run.report, HasSubstr("GEMM bf16"));
  EXPECT_THAT(run.report, HasSubstr("EP2 packed fill pairwise: alpha"));
}

TEST(Ceilings, StandBesideWhatPointsAchieved) {
  const ToyRun run = run_toy(2, {kMeasure});
  ASSERT_THAT(run.records, SizeIs(2));
  const Json& gemm = run.facts["ceilings"]["rates"][0]["gemm"]["bf16"]["flop_per_s_of_rank"];
  for (const Json& record : run.records) {
    const Json& roofline = record["ffn_roofline"];
    ASSERT_TRUE(roofline.is_object());
    EXPECT_THAT(gemm, testing::Contains(roofline["ceiling_flop_per_s"]));
    EXPECT_NEAR(roofline["share"].get<double>(),
                roofline["achieved_flop_per_s"].get<double>() /
                    roofline["attainable_flop_per_s"].get<double>(),
                1e-9);
    EXPECT_EQ(record["metrics"]["ffn_roofline_share"], roofline["share"]);
    EXPECT_TRUE(is_rate(record["metrics"]["ffn_peak_share"]));
  }
  EXPECT_TRUE(run.records[0]["metrics"]["exchange_ceiling_share"].is_null());  // EP 1
  EXPECT_EQ(run.records[1]["metrics"]["exchange_ceiling_share"].is_null(),
            run.facts["ceilings"]["exchange"][0]["beta_bytes_per_s"].is_null());
}

// Fewer working ranks share the machine differently: they measure on their own.
TEST(Ceilings, AreOfTheRanksThatWork) {
  const ToyRun run = run_toy(4, {kMeasure, "ep_sizes: [2, 4]", "groups: single"});
  EXPECT_THAT(run.result.exit_code, AnyOf(0, 3)) << run.result.err;
  ASSERT_THAT(run.facts["ceilings"]["rates"], SizeIs(2));
  EXPECT_THAT(run.facts["ceilings"]["rates"][0]["working_ranks"], ElementsAre(0, 1));
  EXPECT_THAT(run.facts["ceilings"]["rates"][1]["working_ranks"], ElementsAre(0, 1, 2, 3));
}

TEST(Ceilings, CanBeSkipped) {
  const ToyRun run = run_toy(2, {});
  EXPECT_EQ(run.result.exit_code, 0);
  EXPECT_TRUE(run.facts["ceilings"].is_null());
  EXPECT_EQ(run.facts["experiment"]["ceilings"], "skip");
  for (const Json& record : run.records) {
    EXPECT_TRUE(record["ffn_roofline"].is_null());
    EXPECT_TRUE(record["metrics"]["ffn_roofline_share"].is_null());
    EXPECT_TRUE(record["metrics"]["ffn_peak_share"].is_null());
    EXPECT_TRUE(record["metrics"]["exchange_ceiling_share"].is_null());
  }
  EXPECT_THAT(run.report, Not(HasSubstr("Ceilings")));
}

// A GPU of one operation a microsecond.
TEST(Impossible, APointAboveADeclaredPeakLeavesTheTables) {
  const ToyRun run = run_toy(
      2, {"hardware: {name: abacus, peak: {bf16_tflops: 0.000001}}", "dtype: [bf16, fp32]"});
  EXPECT_EQ(run.result.exit_code, 3) << run.result.err;
  ASSERT_THAT(run.records, SizeIs(4));
  int impossible = 0;
  for (const Json& record : run.records) {
    if (record["point"]["dtype"] == "fp32") {
      EXPECT_EQ(record["state"], "measured");  // no peak is declared for it
      continue;
    }
    ++impossible;
    EXPECT_EQ(record["state"], "impossible");
    EXPECT_THAT(record["reason"].get<std::string>(), HasSubstr("above the 0.001 GFLOP/s"));
    EXPECT_THAT(record["reason"].get<std::string>(), HasSubstr("declared for abacus"));
    EXPECT_EQ(record["check"]["verdict"], "passed");
    EXPECT_GT(record["layer"]["slowest_us"]["p50"].get<double>(), 0);  // whoever asks may see it
    EXPECT_FALSE(record["timings_file"].is_null());
  }
  EXPECT_EQ(impossible, 2);
  const std::string unmeasured = run.report.substr(run.report.find("Not measured"));
  EXPECT_THAT(unmeasured, HasSubstr("impossible: expert_ffn of rank"));
  const std::string tables = run.report.substr(0, run.report.find("Not measured"));
  EXPECT_THAT(tables, Not(HasSubstr(" bf16 ")));
}

}  // namespace
}  // namespace epsweep
