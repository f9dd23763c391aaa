// The exchange replaced by a local copy, through the whole program: on ranks and simulated.
#include <map>

#include <gmock/gmock.h>

#include "base/text.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Json report_of(const std::string& dir) {
  return parse_json(run_program("report --json " + dir).out, "report");
}

TEST(LocalCopy, DeepPlansMeasureItOnRanksAndTheReportSaysWhatTheExchangeCosts) {
  const TempDir dir;
  const std::string experiment = dir.write(
      "x.yaml",
      toy_experiment({"explain: deep", "routing: zipf", "exchange_unit: [assignment, rank]",
                      "layers: 2", "vary_routing: 2", "repeats: 2"}));
  const ProgramResult run = run_on_ranks(2, "run " + experiment + " --out " + dir.path("out"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  int num_copies = 0;
  for (const Json& record : records_of(dir.path("out"))) {
    EXPECT_EQ(record["state"], "measured") << record["reason"];
    EXPECT_EQ(record["check"]["verdict"], "passed");
    if (record["point"]["transport"] != "local_copy") continue;
    ++num_copies;
    EXPECT_EQ(record["load_from"], "counterfactual");
    EXPECT_TRUE(record["metrics"]["dispatch_a_remote_gb_per_s_per_rank"].is_null());
    EXPECT_TRUE(record["metrics"]["dispatch_b_remote_gb_per_s_per_rank"].is_null());
  }
  EXPECT_EQ(num_copies, 2 * 2 * 2);  // EP sizes, units, repeats
  const Json report = report_of(dir.path("out"));
  std::map<std::string, int> replaced;
  for (const Json& one : report["counterfactuals"]) {
    ++replaced[one["replaced"].get<std::string>()];
    EXPECT_EQ(one["num_repeats"], 2);
    EXPECT_TRUE(one["difference_interval_us"].is_array());
    EXPECT_EQ(one["exchange_transfer_us"].is_null(), one["replaced"] != "exchange");
  }
  EXPECT_EQ(replaced["exchange"], 4);
  EXPECT_EQ(replaced["routing"], 4);
  EXPECT_THAT(to_json_line(report["why"]), Not(HasSubstr("local_copy")));
  EXPECT_THAT(run.out, HasSubstr("\nCounterfactuals (layer p50"));
  EXPECT_THAT(run.out, HasSubstr("exchange pairwise"));
}

TEST(LocalCopy, PlansCountIt) {
  const TempDir dir;
  const auto plan = [&dir](const std::string& explain) {
    return run_program("plan " + dir.write("x.yaml", toy_experiment({"explain: " + explain}))).out;
  };
  // Of EP1 and EP2 balanced routing and copies; contiguous they are.
  EXPECT_THAT(plan("deep"), HasSubstr("6 points (4 of them counterfactuals), model m"));
  EXPECT_THAT(plan("bridges"), HasSubstr("2 points, model m"));
}

TEST(LocalCopy, MayBeAskedForAndIsLabelled) {
  const TempDir dir;
  const std::string experiment =
      dir.write("x.yaml", toy_experiment({"transport: [local_copy]", "ceilings: measure"}));
  const ProgramResult run = run_on_ranks(2, "run " + experiment + " --out " + dir.path("out"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const Json& record : records_of(dir.path("out"))) {
    EXPECT_EQ(record["state"], "measured");
    EXPECT_EQ(record["load_from"], "ladder");
    EXPECT_EQ(record["point"]["transport"], "local_copy");
  }
  EXPECT_THAT(run.out, AllOf(HasSubstr("\nL a local copy of the same rows instead"),
                             Not(HasSubstr("\nWhy "))));
  const Json facts = parse_json(read_text_file(dir.path("out/run.json")), "run.json");
  EXPECT_FALSE(facts["ceilings"].is_null());
  // Nobody asked what exchanges take at best.
  EXPECT_TRUE(facts["ceilings"]["exchange"].empty());
}

// Rank 1 comes 20 ms late to every dispatch: in an exchange rank 0 waits for its rows, in a copy it
// does not. The bounds leave half of the delay to whatever else delays a rank on a busy machine.
TEST(LocalCopy, NobodyWaitsForALateRank) {
  const TempDir dir;
  const std::string experiment = dir.write(
      "x.yaml",
      toy_experiment({"transport: [pairwise, local_copy]", "ep_sizes: [2]", "iterations: 6"}));
  const ProgramResult run = run_on_ranks(2, "run " + experiment + " --out " + dir.path("out") +
                                                " --inject delay:rank=1:stage=dispatch:us=20000");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const Json& record : records_of(dir.path("out"))) {
    const double slowest_us = record["stages"]["dispatch"]["slowest_us"]["p50"].get<double>();
    if (record["point"]["transport"] == "pairwise") {
      EXPECT_GT(slowest_us, 10'000);
    } else {
      EXPECT_LT(slowest_us, 10'000);
    }
  }
}

TEST(LocalCopy, FaultsOfItsRehearsalAreCaught) {
  const TempDir dir;
  const std::string experiment =
      dir.write("x.yaml", toy_experiment({"transport: [local_copy]", "ep_sizes: [2]"}));
  const ProgramResult run = run_on_ranks(
      2, "run " + experiment + " --out " + dir.path("out") + " --inject drop_row:rank=1");
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_EQ(records_of(dir.path("out")).at(0)["state"], "failed");
}

TEST(LocalCopy, HasNoGraph) {
  const TempDir dir;
  const std::string experiment =
      dir.write("x.yaml", toy_experiment({"transport: [local_copy]", "launch: graph"}));
  const ProgramResult run = run_on_ranks(2, "run " + experiment + " --out " + dir.path("out"));
  EXPECT_EQ(run.exit_code, 4) << run.err;
  EXPECT_EQ(records_of(dir.path("out")).at(0)["state"], "skipped");
}

// Two ranks whose link takes 20 us a message and whose own bytes cost nothing to speak of.
Json simulated(const TempDir& dir, const std::string& links) {
  const std::string experiment = dir.write(
      "x.yaml", toy_experiment({"explain: deep", "ep_sizes: [2]", "routing: balanced",
                                "sim: {stages_us: {expert_ffn: 50}, exchange: {intra_alpha_us: 20, "
                                "intra_bytes_per_s: 1e15, self_bytes_per_s: 1e15}" +
                                    links + "}"}));
  const std::string out = dir.path(links.empty() ? "plain" : "linked");
  const ProgramResult run = run_program("run " + experiment + " --backend sim --out " + out);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const Json counterfactuals = report_of(out)["counterfactuals"];
  EXPECT_EQ(counterfactuals.size(), 1U);  // balanced and contiguous it is already
  return counterfactuals.at(0);
}

// 65 us of other stages; counts, dispatch and combine take 20 each, and 300 more over the slow
// link but for the counts.
TEST(LocalCopy, APlantedLinkDisappearsExactly) {
  const TempDir dir;
  const Json plain = simulated(dir, ""), linked = simulated(dir, ", links: {0-1: {extra_us: 300}}");
  EXPECT_NEAR(plain["layer_p50_us"][0].get<double>(), 125, 0.01);
  EXPECT_NEAR(plain["by_layer_p50_us"][0].get<double>(), 65, 0.01);
  EXPECT_NEAR(plain["difference_us"].get<double>(), -60, 0.01);
  EXPECT_NEAR(plain["exchange_transfer_us"].get<double>(), 60, 0.01);
  EXPECT_NEAR(plain["by_exchange_transfer_us"].get<double>(), 0, 0.01);
  EXPECT_EQ(linked["by_layer_p50_us"], plain["by_layer_p50_us"]);
  EXPECT_NEAR(linked["difference_us"].get<double>(), -660, 0.01);
}

TEST(LocalCopy, IsNotPredictedFromExchanges) {
  const TempDir dir;
  const std::vector<std::string> lines = {"ep_sizes: [2, 4]",
                                          "concurrency: {fixed_global: [64, 256]}", "explain: none",
                                          "topology: {ranks_per_host: 8}"};
  const std::string calibration = dir.write("cal.yaml", toy_experiment(lines));
  ASSERT_EQ(run_program("run " + calibration + " --backend sim --ranks 8 --out " + dir.path("cal"))
                .exit_code,
            0);
  std::vector<std::string> deep = lines;
  deep[2] = "explain: deep";
  const ProgramResult run =
      run_program("predict " + dir.write("x.yaml", toy_experiment(deep)) + " --calibration " +
                  dir.path("cal") + " --out " + dir.path("out"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  int num_copies = 0;
  for (const Json& record : records_of(dir.path("out"))) {
    const bool copies = record["point"]["transport"] == "local_copy";
    num_copies += copies ? 1 : 0;
    EXPECT_EQ(record["state"], copies ? "skipped" : "predicted");
    if (copies) {
      EXPECT_THAT(record["reason"].get<std::string>(), HasSubstr("not their replacement"));
    }
  }
  EXPECT_EQ(num_copies, 4);
}

}  // namespace
}  // namespace epsweep
