// Placements through the program: what plans say of them, and that runs say the same.
#include <filesystem>

#include <gmock/gmock.h>

#include "support/program.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

const std::string kModel =
    "model: {name: m, hidden_dim: 64, ffn_dim: 32, num_experts: 16, top_k: 2, num_moe_layers: 1, "
    "router: {num_groups: 4, topk_groups: 4}}";

struct Planned {
  ProgramResult result;
  Json points;
};

Planned plan_of(const TempDir& dir, const std::vector<std::string>& changes) {
  Planned planned;
  planned.result = run_program("plan --json " + dir.write("x.yaml", toy_experiment(changes)));
  if (planned.result.exit_code == 0) {
    planned.points = parse_json(planned.result.out, "plan")["points"];
  }
  return planned;
}

// C43
TEST(PlacementPlan, NothingToDoIsSaid) {
  const TempDir dir;
  const std::vector<std::string> changes = {"ep_sizes: [4]", "routing: balanced",
                                            "placement: [contiguous, eplb]"};
  for (const Json& point : plan_of(dir, changes).points) {
    EXPECT_EQ(point["placement_score"]["rebalance_needed"], false);
    EXPECT_EQ(point["placement_score"]["moved_slots"]["total"], 0);
    EXPECT_EQ(point["placement_score"]["before"]["mean_over_layers"], 1.0);
  }
  const ProgramResult table = run_program("plan " + dir.write("y.yaml", toy_experiment(changes)));
  EXPECT_THAT(table.out, AllOf(HasSubstr("Placement, concurrency fixed_global"),
                               HasSubstr("no rebalance needed")));
  const ProgramResult plain =
      run_program("plan " + dir.write("z.yaml", toy_experiment({"ep_sizes: [4]"})));
  EXPECT_THAT(plain.out, Not(HasSubstr("Placement")));
}

// 80 tokens choose expert 0 and one other: rows 80, 20, 10, 10, 20, 10, 5, 5. Moving experts leaves
// the hottest one whole; a slot more on each rank splits it.
TEST(PlacementPlan, CaseC39RearrangeOnly) {
  const TempDir dir;
  std::string trace;
  const std::vector<int> tokens_of_expert = {0, 20, 10, 10, 20, 10, 5, 5};
  for (std::size_t expert = 1; expert < tokens_of_expert.size(); ++expert) {
    for (int i = 0; i < tokens_of_expert[expert]; ++i) {
      trace += "{\"layer\": 0, \"experts\": [0, " + std::to_string(expert) + "]}\n";
    }
  }
  dir.write("t.jsonl", trace);
  const Json points =
      plan_of(dir, {"ep_sizes: [4]", "concurrency: {fixed_global: [80]}",
                    "routing: {distribution: recorded_trace, trace_file: t.jsonl}",
                    "placement: {policies: [contiguous, eplb], redundant_slots: [0, 4]}"})
          .points;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0]["rows_per_rank"]["max"], 100);
  EXPECT_EQ(points[0]["rows_per_rank"]["min"], 10);
  EXPECT_EQ(points[0]["rows_per_rank"]["max_over_mean"], 2.5);
  EXPECT_EQ(points[1]["rows_per_rank"]["max"], 85);
  EXPECT_EQ(points[1]["placement_score"]["before"]["mean_over_layers"], 2.5);
  EXPECT_EQ(points[1]["placement_score"]["judged"]["mean_over_layers"], 2.125);
  EXPECT_EQ(points[1]["placement_score"]["extra_weight_bytes_per_rank"], 0);
  EXPECT_LE(points[2]["rows_per_rank"]["max"].get<int>(), 50);
  // One slot of three matrices of 64 x 32 in bf16.
  EXPECT_EQ(points[2]["placement_score"]["extra_weight_bytes_per_rank"], 3 * 64 * 32 * 2);
}

TEST(PlacementPlan, AnUnseenTraceIsNamedAndASeenOneWarnedOf) {
  const TempDir dir;
  const auto plan = [&dir](const std::string& fit_on) {
    return plan_of(
        dir, {kModel, "ep_sizes: [4]", "routing: {distribution: zipf, zipf_alpha: 1.2}",
              "concurrency: {fixed_global: [300]}",
              "placement: {policies: [contiguous, eplb], redundant_slots: [0, 16]" + fit_on + "}"});
  };
  const Json unseen = plan(", fit_on: {step: 1, tokens: 2000}").points;
  ASSERT_EQ(unseen.size(), 3U);
  EXPECT_EQ(unseen[1]["placement_fitted_on"], "step 1 of the same routing, 2000 tokens");
  EXPECT_EQ(unseen[1]["placement_score"]["judged_on"], "own trace");
  EXPECT_EQ(unseen[0]["placement_score"]["fitted"], nullptr);
  for (const Json& point : unseen) {
    EXPECT_FALSE(point.contains("warnings"));
    EXPECT_EQ(point["routing_checksum"], unseen[0]["routing_checksum"]);
    EXPECT_EQ(point["rows_per_expert"], unseen[0]["rows_per_expert"]);
    EXPECT_EQ(point["placement_score"]["before"], unseen[0]["placement_score"]["before"]);
  }
  const Json seen = plan("").points;
  EXPECT_EQ(seen[1]["placement_fitted_on"], "own trace (in-sample)");
  EXPECT_THAT(seen[1]["warnings"][0].get<std::string>(), HasSubstr("in-sample"));
  EXPECT_EQ(seen[1]["placement_score"]["judged"], seen[1]["placement_score"]["fitted"]);
  const ProgramResult table = run_program("plan " + dir.path("x.yaml"));
  EXPECT_THAT(table.out, HasSubstr("warning: placement eplb is judged on tokens it was fitted to"));
}

// C41 and its kin are answers, not errors.
TEST(PlacementPlan, HostsThatDoNotFitAreAReason) {
  const TempDir dir;
  const Json points =
      plan_of(dir, {kModel, "ep_sizes: [6, 8]", "placement: eplb_hierarchical",
                    "topology: {host_of_rank: [0, 0, 1, 1, 2, 3, 2, 3]}", "redundant_slots: 8"})
          .points;
  EXPECT_THAT(points[0]["reason"].get<std::string>(), HasSubstr("ranks per host 2, 2, 1, 1"));
  EXPECT_EQ(points[1]["feasible"], true);
}

TEST(PlacementPlan, AFileDecidesWhereExpertsAre) {
  const TempDir dir;
  dir.write(
      "m.yaml",
      "num_slots: 8\nep_size: 2\ninitial_global_assignments: {3: [7, 6, 5, 4, 3, 2, 1, 0]}\n");
  const Json points =
      plan_of(dir, {"ep_sizes: [2, 4]", "placement: [contiguous, {policy: map, file: m.yaml}]"})
          .points;
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[1]["placement_score"]["moved_slots"]["total"], 8);
  EXPECT_EQ(points[1]["placement_fitted_on"], "file m.yaml");
  EXPECT_EQ(points[1]["placement_map"]["file"], "m.yaml");
  EXPECT_EQ(points[3]["reason"], "m.yaml is a placement for ep_size 2, not 4");
  dir.write("m.yaml", "num_slots: 8\ninitial_global_assignments: {3: [7, 6, 5, 4, 3, 2, 1, 8]}\n");
  const ProgramResult bad = run_program("plan " + dir.path("x.yaml"));
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, AllOf(HasSubstr("m.yaml:2"), HasSubstr("8 is outside 0 to 7")));
}

// Every rank fits the placement to a trace that it does not run, and what a run records of it is
// what the plan said.
TEST(PlacementRun, RecordsSayWhatThePlanSaid) {
  const TempDir dir;
  std::string map = "num_slots: 16\ninitial_global_assignments:\n";
  for (const char* layer : {"3", "4"}) {
    map += std::string("  ") + layer + ": [15, 3, 1, 0, 2, 4, 6, 5, 14, 13, 7, 8, 9, 10, 11, 12]\n";
  }
  dir.write("m.yaml", map);
  const Planned planned = plan_of(
      dir,
      {kModel, "ep_sizes: [4]", "layers: 2", "concurrency: {fixed_global: [120]}",
       "routing: {distribution: zipf, zipf_alpha: 1.2}", "topology: {host_of_rank: [0, 1, 0, 1]}",
       "placement: {policies: [contiguous, eplb, eplb_hierarchical, {policy: map, file: m.yaml}], "
       "redundant_slots: 8, fit_on: {step: 1, tokens: 500}, judge_on: {step: 2}}"});
  ASSERT_EQ(planned.result.exit_code, 0) << planned.result.err;
  const ProgramResult run =
      run_on_ranks(4, "run " + dir.path("x.yaml") + " --out " + dir.path("out"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<Json> records = records_of(dir.path("out"));
  ASSERT_EQ(records.size(), 4U);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Json &record = records[i], &point = planned.points[i];
    EXPECT_EQ(record["check"]["verdict"], "passed");
    EXPECT_EQ(record["id"], point["id"]);
    EXPECT_EQ(record["placement_score"], point["placement_score"]);
    EXPECT_EQ(record["placement_fitted_on"], point["placement_fitted_on"]);
    EXPECT_EQ(record["routing_checksum"], records[0]["routing_checksum"]);
    EXPECT_EQ(record["rows_per_expert"], records[0]["rows_per_expert"]);
    EXPECT_EQ(record["rows_per_rank"]["max_over_mean"], point["rows_per_rank"]["max_over_mean"]);
  }
  EXPECT_EQ(records[2]["placement_fitted_on"], "step 1 of the same routing, 500 tokens");
  EXPECT_EQ(records[2]["placement_score"]["judged_on"], "step 2 of the same routing, 120 tokens");
  EXPECT_LT(records[1]["placement_score"]["judged"]["mean_over_layers"].get<double>(),
            records[0]["placement_score"]["judged"]["mean_over_layers"].get<double>());
}

TEST(PlacementRun, InSampleRecordsAreWarnedOf) {
  const TempDir dir;
  const std::string experiment =
      dir.write("x.yaml", toy_experiment({"ep_sizes: [2]", "placement: eplb", "routing: uniform"}));
  const ProgramResult run = run_on_ranks(2, "run " + experiment + " --out " + dir.path("out"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json record = records_of(dir.path("out")).at(0);
  EXPECT_THAT(record["warnings"].dump(), HasSubstr("in-sample"));
}

}  // namespace
}  // namespace epsweep
