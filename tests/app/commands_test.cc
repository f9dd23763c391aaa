// plan, report, list and import-model, and what they say to bad input. None of them starts MPI.
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>

#include "support/program.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kShapeS =
    "model: {name: S, hidden_dim: 7168, ffn_dim: 2048, num_experts: 256, top_k: 8, "
    "num_moe_layers: 58}";

Json plan_points(const std::string& text, const std::string& options = "") {
  const TempDir dir;
  const ProgramResult result =
      run_program("plan --json " + dir.write("x.yaml", text) + " " + options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return parse_json(result.out, "plan")["points"];
}

TEST(Plan, CaseC01FixedGlobalConcurrency) {
  const Json points = plan_points(toy_experiment(
      {kShapeS, "ep_sizes: [8, 32]", "concurrency: {fixed_global: [256]}", "routing: balanced"}));
  EXPECT_EQ(points[0]["tokens_per_rank"], 32);
  EXPECT_EQ(points[1]["tokens_per_rank"], 8);
  EXPECT_EQ(points[0]["local_experts"], 32);
  EXPECT_EQ(points[1]["local_experts"], 8);
  EXPECT_EQ(points[0]["rows_per_rank"]["mean"], 256);
  EXPECT_EQ(points[1]["rows_per_rank"]["mean"], 64);
  for (const Json& point : points) EXPECT_EQ(point["rows_per_expert"]["mean"], 8);
  EXPECT_EQ(points[0]["routing_checksum"], points[1]["routing_checksum"]);
}

TEST(Plan, CaseC02FixedPerRankConcurrency) {
  const Json points = plan_points(toy_experiment(
      {kShapeS, "ep_sizes: [8, 32]", "concurrency: {fixed_per_rank: [32]}", "explain: none"}));
  EXPECT_EQ(points[0]["tokens_global"], 256);
  EXPECT_EQ(points[1]["tokens_global"], 1024);
  EXPECT_EQ(points[0]["rows_per_expert"]["mean"], 8);
  EXPECT_EQ(points[1]["rows_per_expert"]["mean"], 32);
  for (const Json& point : points) {
    EXPECT_EQ(point["rows_per_rank"]["mean"], 256);
    EXPECT_EQ(point["concurrency"], "fixed_per_rank");
  }
  // One expert is 44,040,192 parameters; 32 of them in bf16.
  EXPECT_EQ(points[0]["weight_bytes_per_rank"], 32LL * 44'040'192 * 2);
}

TEST(Plan, CaseC04UnevenTokensAreShownAsAVector) {
  const Json points =
      plan_points(toy_experiment({"ep_sizes: [8]", "concurrency: {fixed_global: [100]}"}));
  EXPECT_THAT(points[0]["tokens_per_rank"], ElementsAre(13, 13, 13, 13, 12, 12, 12, 12));
}

TEST(Plan, CaseC08UnevenExpertsAreShownAsAVector) {
  const Json points = plan_points(toy_experiment(
      {"model: {name: m, hidden_dim: 8, ffn_dim: 8, num_experts: 30, top_k: 2, num_moe_layers: 1}",
       "ep_sizes: [8]"}));
  EXPECT_THAT(points[0]["local_experts"], ElementsAre(4, 4, 4, 4, 4, 4, 3, 3));
}

TEST(Plan, CaseC09FewerExpertsThanRanksIsInfeasibleUnlessAllowed) {
  const std::string text = toy_experiment({"ep_sizes: [32]"});
  const Json refused = plan_points(text);
  EXPECT_EQ(refused[0]["feasible"], false);
  EXPECT_THAT(refused[0]["reason"].get<std::string>(), AllOf(HasSubstr("32"), HasSubstr("8 exp")));
  EXPECT_EQ(plan_points(text, "--set allow_empty_ranks=true")[0]["feasible"], true);
}

TEST(Plan, CaseC14SeedAndStepChangeTheRouting) {
  const auto checksum = [](const std::string& options) {
    return plan_points(toy_experiment({"seed: 7"}), options)[0]["routing_checksum"];
  };
  EXPECT_NE(checksum(""), checksum("--set seed=8"));
  EXPECT_NE(checksum(""), checksum("--set step=1"));
  EXPECT_EQ(checksum("--set seed=8"), checksum("--set seed=8"));
}

TEST(Plan, ReplicasBalanceRanksAndLeaveTheRoutingAlone) {
  const std::string text = toy_experiment(
      {kShapeS, "ep_sizes: [32]", "concurrency: {fixed_global: [4096]}",
       "routing: lognormal_blocks", "placement: [contiguous, eplb]", "redundant_slots: [0, 32]"});
  const Json points = plan_points(text);
  ASSERT_EQ(points.size(), 3U);
  std::vector<double> imbalance;
  for (const Json& point : points) {
    imbalance.push_back(point["rows_per_rank"]["max_over_mean"].get<double>());
    EXPECT_EQ(point["routing_checksum"], points[0]["routing_checksum"]);
    EXPECT_EQ(point["rows_per_expert"], points[0]["rows_per_expert"]);
    EXPECT_EQ(point["rows_per_rank"]["mean"], 1024);
  }
  EXPECT_GT(imbalance[0], 1.5);
  EXPECT_LT(imbalance[1], imbalance[0]);
  EXPECT_LT(imbalance[2], 1.2);
  EXPECT_EQ(points[0]["placement_fitted_on"], nullptr);
  EXPECT_EQ(points[2]["placement_fitted_on"], "own trace (in-sample)");
  EXPECT_EQ(points[2]["redundant_slots"], 32);
  EXPECT_EQ(points[2]["local_experts"], 9);
  EXPECT_EQ(points[2]["weight_bytes_per_rank"], 9LL * 44'040'192 * 2);
}

TEST(Plan, CaseC41SlotsThatDoNotDivideNameWhatWould) {
  const Json points = plan_points(
      toy_experiment({kShapeS, "ep_sizes: [8, 24]", "placement: eplb", "routing: balanced"}));
  EXPECT_EQ(points[0]["feasible"], true);
  EXPECT_THAT(points[1]["reason"].get<std::string>(),
              AllOf(HasSubstr("ep_size 24"), HasSubstr("the smallest that is: 8")));
}

TEST(Plan, WorldSizeDecidesGroupsAndFeasibility) {
  const Json points = plan_points(toy_experiment({"ep_sizes: [2, 4, 8]"}), "--world 6");
  EXPECT_EQ(points[0]["num_groups"], 3);
  EXPECT_EQ(points[1]["num_idle_ranks"], 2);
  EXPECT_THAT(points[2]["reason"].get<std::string>(), HasSubstr("more than 6 ranks"));
}

TEST(Plan, APointThatDoesNotFitNamesItsShortfall) {
  const std::string text = toy_experiment({"model: kimi-k3", "ep_sizes: [1, 64]"});
  const Json points = plan_points(text, "--memory-gib 40");
  EXPECT_EQ(points[0]["feasible"], false);
  EXPECT_THAT(points[0]["reason"].get<std::string>(), HasSubstr("GiB short"));
  EXPECT_GT(points[0]["memory_bytes_per_rank"].get<double>(), 50e9);
  EXPECT_EQ(points[1]["feasible"], true);
  EXPECT_EQ(plan_points(text)[0]["feasible"], true);
}

TEST(Plan, TableNeverMixesConcurrencyModes) {
  const TempDir dir;
  const ProgramResult result =
      run_program("plan " + dir.write("x.yaml", toy_experiment({"concurrency: {fixed_global: [16], "
                                                                "fixed_per_rank: [8]}"})));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("concurrency fixed_global"),
                                HasSubstr("concurrency fixed_per_rank")));
  // Every point stands in one of a section's tables: positions 0 to 3, two sizes by two loads.
  std::istringstream lines(result.out.substr(0, result.out.find("\nM: rows per expert")));
  int num_rows = 0;
  for (std::string line; std::getline(lines, line);) {
    num_rows += !line.empty() && line.find_first_of("0123") == line.find_first_not_of(' ') ? 1 : 0;
  }
  EXPECT_EQ(num_rows, 4);
}

// Case C17 through the program: file, line and value; exit 2.
TEST(Plan, BadTraceFilesAreRefused) {
  const TempDir dir;
  std::string trace;
  for (int i = 0; i < 16; ++i) {
    trace += i == 4 ? "{\"experts\": [1, 64]}\n" : "{\"experts\": [1, 2]}\n";
  }
  dir.write("t.jsonl", trace);
  const ProgramResult result = run_program(
      "plan " +
      dir.write("x.yaml",
                toy_experiment({"routing: {distribution: recorded_trace, trace_file: t.jsonl}"})));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("t.jsonl:5"), HasSubstr("64")));
  EXPECT_EQ(result.out, "");
}

TEST(Commands, MistakesOnTheCommandLineAndInFilesExitWithTwo) {
  const TempDir dir;
  const std::string bad = dir.write("bad.yaml", toy_experiment({"zipf_aplha: 1"}));
  for (const std::string& arguments :
       std::vector<std::string>{"", "plna x", "plan", "plan /no/such/file.yaml", "plan " + bad,
                                "report /no/such/dir", "report", "run " + bad, "plan --world 0 x",
                                "import-model /no/such.json", "report --csv --json ."}) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << ": " << result.err;
    EXPECT_NE(result.err + result.out, "") << arguments;
  }
}

TEST(Commands, HelpAndVersionExitWithZero) {
  for (const char* arguments : {"--help", "--version", "plan --help", "run --help"}) {
    EXPECT_EQ(run_program(arguments).exit_code, 0) << arguments;
  }
  EXPECT_THAT(run_program("--help").out, AllOf(HasSubstr("import-model"), HasSubstr("Exit codes")));
}

TEST(List, NamesEveryCatalogEntryOnce) {
  const Json json = parse_json(run_program("list --json").out, "list");
  for (const char* section : {"distributions", "placements", "transports", "grouped_gemms",
                              "backends", "metrics", "models", "hardware"}) {
    EXPECT_FALSE(json[section].empty()) << section;
  }
  EXPECT_TRUE(json["distributions"].contains("lognormal_blocks"));
  EXPECT_TRUE(json["models"].contains("deepseek-v3"));
  EXPECT_TRUE(json["hardware"].contains("gb200-nvl72"));
}

const char* const kConfig = R"({"model_type": "qwen3_moe", "hidden_size": 2048,
  "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8,
  "num_hidden_layers": 48, "decoder_sparse_step": 1, "mlp_only_layers": [],
  "norm_topk_prob": true, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
  "hidden_act": "silu"%s})";

std::string config_with(const std::string& more) {
  std::string text = kConfig;
  return text.replace(text.find("%s"), 2, more);
}

TEST(ImportModel, WritesAModelThatAnExperimentCanUse) {
  const TempDir dir;
  const std::string config = dir.write("config.json", config_with(""));
  const ProgramResult result =
      run_program("import-model " + config + " --name mine --out " + dir.path("mine.yaml"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("moe_intermediate_size"));
  const Json points = plan_points(toy_experiment({"model: " + dir.path("mine.yaml")}));
  EXPECT_EQ(points[0]["local_experts"], 128);
}

TEST(ImportModel, RefusesAmbiguityAndDenseModels) {
  const TempDir dir;
  const std::string twice = dir.write("twice.json", config_with(", \"n_routed_experts\": 64"));
  const ProgramResult result = run_program("import-model --name x " + twice);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("n_routed_experts"), HasSubstr("num_experts")));
  EXPECT_EQ(result.out, "");
  const std::string dense = dir.write("dense.json", R"({"model_type": "llama", "hidden_size": 8})");
  EXPECT_EQ(run_program("import-model --name x " + dense).exit_code, 2);
}

TEST(Plan, MemoryLimitsOutOfRangeAreRefused) {
  const TempDir dir;
  const std::string file = dir.write("x.yaml", toy_experiment());
  for (const char* gib : {"nan", "-1", "0", "1e-12", "inf"}) {
    const ProgramResult result = run_program("plan " + file + " --memory-gib " + gib);
    EXPECT_EQ(result.exit_code, 2) << gib;
    EXPECT_THAT(result.err, HasSubstr("is not between")) << gib;
  }
}

TEST(Plan, FittedTracesMayAskForTheirSkew) {
  const Json point = plan_points(toy_experiment(
      {"routing: {distribution: zipf, max_over_mean: 2}",
       "placement: {policies: [eplb], fit_on: {distribution: zipf, max_over_mean: 3, step: 1}}"}))
      [0];
  EXPECT_EQ(point["fit_on"]["max_over_mean"], 3);
  EXPECT_TRUE(point["placement_score"].is_object());
}

TEST(Plan, TraceKeysInTheWrongPlaceAreExplained) {
  const TempDir dir;
  const std::string file = dir.write("x.yaml", toy_experiment());
  const ProgramResult beside =
      run_program("plan " + file + " --set 'placement={policy: eplb, fit_on: {step: 1}}'");
  EXPECT_EQ(beside.exit_code, 2);
  EXPECT_THAT(beside.err, HasSubstr("it goes beside 'policies'"));
  const ProgramResult above = run_program("plan " + file + " --set 'judge_on={step: 1}'");
  EXPECT_THAT(above.err, HasSubstr("it belongs under 'placement'"));
}

}  // namespace
}  // namespace epsweep
