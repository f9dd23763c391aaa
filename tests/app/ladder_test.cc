// Ladders of loads and what stops them: under plan, and on real ranks.
#include <gmock/gmock.h>

#include "app/experiment.h"
#include "base/host_probe.h"
#include "base/text.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// 8 experts of 6144 parameters in fp8, 1000 other parameters; 256 bytes of KV per token.
const std::string kModel =
    "model: {name: m, hidden_dim: 64, ffn_dim: 32, num_experts: 8, top_k: 2, num_moe_layers: 1, "
    "total_params: 50152, weight_dtype: fp8, attention: {kind: gqa, kv_bytes_per_token: 256}}";
// At EP2 one sequence of 100 tokens takes 25,600 bytes and its buffers 1792 + 896, and weights take
// 24,576 + 1000: of 500,000 bytes 16 sequences per rank fit, so 32 tokens of a group and not 64.
const std::string kHardware = "hardware: {name: tiny, memory_gb: 0.0005}";
const std::string kServing = "serving: {context_tokens: 100, memory_fraction: 1}";
const std::string kLadder = "concurrency: {fixed_global: {from: 16, to: 256, factor: 2}}";

std::string ladder_experiment(std::vector<std::string> more = {}) {
  std::vector<std::string> lines = {kModel, kHardware, kServing, kLadder, "ep_sizes: [2]"};
  lines.insert(lines.end(), more.begin(), more.end());
  return toy_experiment(lines);
}

Json plan_points(const std::string& text, const std::string& options = "") {
  const TempDir dir;
  const ProgramResult result =
      run_program("plan --json " + dir.write("x.yaml", text) + " " + options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return parse_json(result.out, "plan")["points"];
}

std::string text_of(const Json& value) {
  return value.get<std::string>();
}

TEST(LadderPlan, TheKvRoomStopsTheSeriesAndEndsItsHigherLoads) {
  const Json points = plan_points(ladder_experiment());
  ASSERT_EQ(points.size(), 5U);
  EXPECT_TRUE(points[1]["stop"].is_null());
  EXPECT_EQ(points[1]["feasible"], true);
  EXPECT_EQ(points[0]["serving_memory"]["max_sequences_per_group"], 32);
  EXPECT_EQ(points[2]["feasible"], false);
  EXPECT_EQ(points[2]["stop"]["kind"], "kv_memory");
  EXPECT_EQ(points[2]["stop"]["at_tokens"], 64);
  EXPECT_THAT(text_of(points[2]["stop"]["reason"]),
              AllOf(HasSubstr("32 sequences per rank of 100 tokens"), HasSubstr("KiB short"),
                    HasSubstr("16 fit")));
  EXPECT_FALSE(points[2]["serving_memory"].is_null());
  for (const std::size_t higher : {3U, 4U}) {
    EXPECT_EQ(points[higher]["reason"], "beyond 64 tokens: kv_memory stopped the series");
    EXPECT_EQ(points[higher]["stop"]["at_tokens"], 64);
  }
}

TEST(LadderPlan, OtherSeriesGoOn) {
  // Half the experts on a rank and half the tokens of a group: EP4 still fits at 64.
  const Json points = plan_points(ladder_experiment({"ep_sizes: [2, 4]"}));
  EXPECT_EQ(points[2]["stop"]["kind"], "kv_memory");
  EXPECT_EQ(points[7]["tokens_global"], 64);
  EXPECT_EQ(points[7]["feasible"], true);
  // A load that is infeasible for another reason stops nothing.
  const Json listed = plan_points(
      ladder_experiment({"ep_sizes: [2, 32]", "concurrency: {fixed_global: [16, 32]}"}));
  for (const std::size_t skipped : {2U, 3U}) {
    EXPECT_TRUE(listed[skipped]["stop"].is_null());
    EXPECT_THAT(text_of(listed[skipped]["reason"]), HasSubstr("exceeds the 8 experts"));
  }
}

// Two tokens of every sequence: 25,600 + 2 * 2816 bytes each, so 15 sequences per rank and a step
// of 60 tokens, where one token each makes 16 sequences and 32 tokens.
TEST(LadderPlan, DraftTokensMakeFewerSequencesOfALoad) {
  const Json points = plan_points(ladder_experiment(), "--set serving.draft_tokens=1");
  EXPECT_EQ(points[1]["serving_memory"]["sequences_per_rank"], 8);
  EXPECT_EQ(points[1]["serving_memory"]["max_sequences_per_rank"], 15);
  EXPECT_EQ(points[1]["serving_memory"]["max_tokens_per_step"], 60);
  EXPECT_EQ(points[1]["serving_memory"]["max_rows_per_expert"], 15);
  EXPECT_EQ(plan_points(ladder_experiment())[1]["serving_memory"]["max_tokens_per_step"], 32);
  EXPECT_EQ(points[2]["stop"]["at_tokens"], 64);
}

TEST(LadderPlan, TheProgramsOwnMemoryStopsTooAndStatedMemoryWins) {
  const std::string text =
      toy_experiment({kModel, kLadder, "ep_sizes: [2]", "hardware: {name: big, memory_gb: 1}"});
  EXPECT_EQ(plan_points(text)[4]["feasible"], true);
  const Json points = plan_points(text, "--memory-gib 0.0001");
  EXPECT_EQ(points[1]["feasible"], true);
  EXPECT_EQ(points[4]["feasible"], false);
  EXPECT_EQ(points[4]["stop"]["kind"], "device_memory");
}

TEST(LadderPlan, TheTableShowsMemoryOnlyWhereItWasAskedFor) {
  const TempDir dir;
  const std::string with = dir.write("with.yaml", ladder_experiment());
  EXPECT_THAT(run_program("plan " + with).out,
              AllOf(HasSubstr("Serving memory"), HasSubstr("KV room"), HasSubstr("max/group"),
                    HasSubstr("beyond 64 tokens: kv_memory")));
  const std::string without = dir.write("without.yaml", toy_experiment());
  EXPECT_THAT(run_program("plan " + without).out,
              AllOf(Not(HasSubstr("Serving memory")), Not(HasSubstr("Memory of this program"))));
}

TEST(LadderPlan, MistakesExitWithTwo) {
  const TempDir dir;
  const std::string path = dir.write("x.yaml", ladder_experiment());
  for (const char* wrong :
       {"hardware=h2000", "serving.memory_fraction=-1", "serving.memory_fraction=1.5",
        "serving.context_tokens=0", "hardware=this-machine", "latency_objective_us=0"}) {
    const ProgramResult result = run_program("plan " + path + " --set " + wrong);
    EXPECT_EQ(result.exit_code, 2) << wrong;
    EXPECT_EQ(result.out, "") << wrong;
  }
}

// 2^31 - 8 rows of 4 bytes: refused before anything is drawn, unless the machine has the memory.
TEST(LadderPlan, ARoutingTooLargeForThisMachineIsNotDrawn) {
  SweepPoint point;
  point.model.num_experts = 256;
  point.model.top_k = 8;
  point.concurrency.tokens = (std::int64_t{1} << 28) - 1;
  point.placement = "contiguous";
  const bool fits = ((std::int64_t{1} << 31) - 8) * 4 <= memory_total_bytes() / 4;
  EXPECT_EQ(reason_not_to_plan(point).has_value(), !fits);
}

struct LadderRun {
  ProgramResult result;
  std::vector<Json> records;
};

LadderRun run_ladder(const std::string& text) {
  const TempDir dir;
  LadderRun run;
  run.result = run_on_ranks(2, "run " + dir.write("x.yaml", text) + " --out " + dir.path("out"));
  run.records = records_of(dir.path("out"));
  return run;
}

TEST(LadderRun, PlannedStopsAreRecordedAndNotRun) {
  const LadderRun run = run_ladder(ladder_experiment());
  EXPECT_EQ(run.result.exit_code, 4) << run.result.err;
  ASSERT_EQ(run.records.size(), 5U);
  for (const std::size_t fits : {0U, 1U}) {
    EXPECT_EQ(run.records[fits]["state"], "measured");
    EXPECT_TRUE(run.records[fits]["ladder_stop"].is_null());
  }
  for (const std::size_t stopped : {2U, 3U, 4U}) {
    EXPECT_EQ(run.records[stopped]["state"], "stopped");
    EXPECT_EQ(run.records[stopped]["ladder_stop"]["kind"], "kv_memory");
    EXPECT_EQ(run.records[stopped]["ladder_stop"]["at_tokens"], 64);
    EXPECT_TRUE(run.records[stopped]["layer"].is_null());
  }
  EXPECT_EQ(run.records[4]["reason"], "beyond 64 tokens: kv_memory stopped the series");
  EXPECT_EQ(run.records[0]["serving_memory"]["max_sequences_per_rank"], 16);
  EXPECT_THAT(run.result.out, HasSubstr("EP2 pairwise amx: stopped at 64 tokens by kv_memory"));
}

// 4096 experts of 805 million parameters: 6.6 TB, more than any machine has.
TEST(LadderRun, WeightsBeyondTheMachinesMemoryStopTheSeries) {
  const LadderRun run = run_ladder(toy_experiment(
      {"model: {name: m, hidden_dim: 16384, ffn_dim: 16384, num_experts: 4096, top_k: 2, "
       "num_moe_layers: 1}",
       "ep_sizes: [2]", "concurrency: {fixed_global: [16, 32]}"}));
  EXPECT_EQ(run.result.exit_code, 4) << run.result.err;
  ASSERT_EQ(run.records.size(), 2U);
  EXPECT_EQ(run.records[0]["state"], "stopped");
  EXPECT_EQ(run.records[0]["ladder_stop"]["kind"], "device_memory");
  EXPECT_THAT(text_of(run.records[0]["reason"]), HasSubstr("GiB short"));
  EXPECT_FALSE(run.records[0]["rows_per_rank"].is_null());
  EXPECT_EQ(run.records[1]["reason"], "beyond 16 tokens: device_memory stopped the series");
  EXPECT_TRUE(run.records[1]["rows_per_rank"].is_null());
}

TEST(LadderRun, ALoadSlowerThanTheObjectiveIsTheLast) {
  const LadderRun run = run_ladder(
      toy_experiment({"concurrency: {fixed_global: [16, 32, 64]}", "latency_objective_us: 0.001"}));
  EXPECT_EQ(run.result.exit_code, 4) << run.result.err;
  ASSERT_EQ(run.records.size(), 8U);
  for (const std::size_t first : {0U, 4U}) {  // of EP1 and of EP2
    EXPECT_EQ(run.records[first]["state"], "measured");
    EXPECT_TRUE(run.records[first]["ladder_stop"].is_null());
    EXPECT_EQ(run.records[first + 1]["point"]["attempt"], 2);
    EXPECT_EQ(run.records[first + 1]["ladder_stop"]["kind"], "latency_objective");
    EXPECT_EQ(run.records[first + 3]["state"], "stopped");
    EXPECT_EQ(run.records[first + 3]["reason"],
              "beyond 16 tokens: latency_objective stopped the series");
  }
}

TEST(LadderRun, AnObjectiveThatIsMetStopsNothing) {
  const LadderRun run = run_ladder(
      toy_experiment({"concurrency: {fixed_global: [16, 32]}", "latency_objective_us: 1e9"}));
  EXPECT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_THAT(run.result.out,
              HasSubstr("EP2 pairwise amx: reached the end of the ladder at 32 tokens"));
}

}  // namespace
}  // namespace epsweep
