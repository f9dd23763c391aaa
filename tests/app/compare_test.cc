// epsweep compare, on simulated runs.
#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>

#include "base/text.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Eight ranks, four repeats that differ by up to a few per cent.
class Compare : public ::testing::Test {
 protected:
  TempDir dir;

  std::string run(const std::string& name, const std::vector<std::string>& changes = {}) const {
    std::vector<std::string> lines = {"ep_sizes: [4, 8]",
                                      "routing: balanced",
                                      "iterations: 10",
                                      "repeats: 4",
                                      "concurrency: {fixed_global: [64], fixed_per_rank: [8]}",
                                      "explain: none",
                                      "sim: {noise: {run: 0.01}}"};
    lines.insert(lines.end(), changes.begin(), changes.end());
    const std::string out = dir.path(name);
    const ProgramResult result =
        run_program("run " + dir.write(name + ".yaml", toy_experiment(lines)) +
                    " --backend sim --ranks 8 --out " + out);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return out;
  }
};

void change_run_json(const std::string& dir, const std::string& key, const Json& value) {
  const std::string path = dir + "/run.json";
  Json run = parse_json(read_text_file(path), path);
  run[key] = value;
  std::ofstream(path) << run.dump(2);
}

ProgramResult compare(const std::string& arguments) {
  return run_program("compare " + arguments);
}

// Case C60.
TEST_F(Compare, ARunWithItselfIsAllZero) {
  const std::string a = run("a");
  const ProgramResult result = compare(a + " " + a + "/ --fail-on regression:0% --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = parse_json(result.out, "compare");
  EXPECT_EQ(json["pairs"].size(), 4U);
  for (const Json& pair : json["pairs"]) {
    EXPECT_EQ(pair["a"]["indices"], pair["b"]["indices"]);
    EXPECT_EQ(pair["a"]["indices"].size(), 4U);
    for (const Json& quantity : pair["quantities"]) EXPECT_EQ(quantity["difference"], 0);
  }
  EXPECT_EQ(json["regressions"].size() + json["improvements"].size(), 0U);
  EXPECT_EQ(json["fail_on"]["failed"], false);
}

// The experts take 30 us more, which is in expert_ffn, in the layer, and in what --fail-on ends.
TEST_F(Compare, ASlowerStageIsFoundWhereItIs) {
  const std::string a = run("a", {"sim: {stages_us: {expert_ffn: 100}}"});
  const std::string b = run("b", {"sim: {stages_us: {expert_ffn: 130}}"});
  const ProgramResult refused = compare(a + " " + b);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("sim (/stages_us/expert_ffn 100.0 -> 130.0)"));
  const std::string across = a + " " + b + " --across sim";
  const ProgramResult result = compare(across);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("sim /stages_us/expert_ffn 100.0 -> 130.0\n"),
                                HasSubstr("Regressions: 8\n"), HasSubstr("expert_ffn +30.0 us"),
                                HasSubstr("Improvements: none shown")));
  EXPECT_EQ(compare(across + " --fail-on regression:5%").exit_code, 6);
  EXPECT_EQ(compare(across + " --fail-on regression:500%").exit_code, 0);
  EXPECT_EQ(compare(b + " " + a + " --across sim --fail-on regression:0%").exit_code, 0);
}

TEST_F(Compare, TooFewRepeatsFailOnlyWhereAsked) {
  const std::string a = run("a", {"sim: {stages_us: {expert_ffn: 100}}", "repeats: 1"});
  const std::string b = run("b", {"sim: {stages_us: {expert_ffn: 200}}", "repeats: 1"});
  const std::string fail = a + " " + b + " --across sim --fail-on regression:5%";
  const ProgramResult allowed = compare(fail);
  EXPECT_EQ(allowed.exit_code, 0);
  EXPECT_THAT(allowed.out, HasSubstr("Regressions beyond 5 %: 0; 8 more with too few repeats"));
  EXPECT_EQ(compare(fail + " --few-repeats fail").exit_code, 6);
}

// At 64 tokens of a group twice the ranks halve what each of them pushes through; at 8 tokens of
// each rank they do not.
TEST_F(Compare, TwoEpSizesOfOneRunInBothModes) {
  const ProgramResult result = compare(run("a") + " --a ep_size=4 --b ep_size=8 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = parse_json(result.out, "compare");
  ASSERT_EQ(json["pairs"].size(), 2U);
  for (const Json& pair : json["pairs"]) {
    EXPECT_EQ(pair["a"]["axes"]["ep_size"], 4);
    EXPECT_EQ(pair["b"]["axes"]["ep_size"], 8);
    EXPECT_EQ(pair["a"]["launch"],
              Json({{"world_size", 8}, {"num_groups", 2}, {"num_active_ranks", 8}}));
    EXPECT_EQ(pair["b"]["launch"]["num_groups"], 1);
    const bool global = pair["point"]["concurrency"] == "fixed_global";
    for (const Json& quantity : pair["quantities"]) {
      if (quantity["name"] != "tokens_per_s_per_rank") continue;
      EXPECT_NEAR(quantity["relative"].get<double>(), global ? -0.5 : 0, 0.05);
      EXPECT_EQ(quantity["change"], global ? "worse" : "nothing");
    }
  }
}

// Case C60.
TEST_F(Compare, WhatOneSideLacksIsListed) {
  const ProgramResult result = compare(run("a") + " " + run("b", {"ep_sizes: [4]"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nOf A alone\n  EP8 fixed_global 64"));
  EXPECT_THAT(result.out, HasSubstr("4 repeats: no such point in B\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("Of B alone")));
}

// Case C60: other or unknown hardware. Case C37: another regime.
TEST_F(Compare, WhatIsNotComparableIsRefusedOrLabelled) {
  const std::string a = run("a"), b = run("b");
  change_run_json(b, "backend", "cuda");
  const ProgramResult refused = compare(a + " " + b);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("hardware: backend 'sim' in A, 'cuda' in B; --allow hardware"));
  EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
  const ProgramResult allowed = compare(a + " " + b + " --allow hardware");
  EXPECT_EQ(allowed.exit_code, 0) << allowed.err;
  EXPECT_THAT(allowed.out, HasSubstr("NOT COMPARABLE, allowed: hardware: backend 'sim' in A"));
  change_run_json(b, "provenance", nullptr);
  EXPECT_THAT(compare(a + " " + b).err, HasSubstr("'virtual clock' in A, not said in B"));
  const std::string c = run("c");
  std::vector<Json> records = records_of(c);
  std::ofstream points(c + "/points.jsonl");
  for (Json& record : records) {
    record["layer"] = nullptr;
    points << to_json_line(record) << "\n";
  }
  points.close();
  const ProgramResult regimes = compare(a + " " + c);
  EXPECT_EQ(regimes.exit_code, 2);
  EXPECT_THAT(regimes.err, HasSubstr("aligned and chained in A, aligned in B; --allow regime"));
  change_run_json(c, "schema_version", "1.0");
  EXPECT_THAT(compare(a + " " + c).err, HasSubstr("schema_version 1.0 is not readable"));
}

// The ungrouped kernel beside the grouped one: in the report of what was measured, and point by
// point. Times decide nothing here.
TEST_F(Compare, TwoKernelsOfAMeasuredRun) {
  const std::string out = dir.path("out");
  const ProgramResult measured = run_on_ranks(
      2,
      "run " +
          dir.write("x.yaml", toy_experiment({"grouped_gemm: [onednn, loop]",
                                              "exchange_unit: [assignment, rank]", "repeats: 2"})) +
          " --out " + out);
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_THAT(measured.out, AllOf(HasSubstr("\nKernels\n"), HasSubstr("onednn  x loop  best"),
                                  HasSubstr("\nExchanges\n"), HasSubstr(" rank  best\n"),
                                  HasSubstr("\nEP sizes, each at its best choice")));
  const ProgramResult result =
      compare(out + " --a grouped_gemm=loop --b grouped_gemm=onednn --fail-on regression:0%");
  EXPECT_EQ(result.exit_code, 0) << result.err;  // two and two repeats show nothing
  EXPECT_THAT(result.out, AllOf(HasSubstr("\ngrouped_gemm loop -> onednn\n"),
                                HasSubstr("Regressions: none shown")));
  EXPECT_THAT(result.out, Not(HasSubstr("Of A alone")));
}

struct Mistake {
  std::string options, said;
};

TEST_F(Compare, MistakesAreOneLine) {
  const std::string a = run("a"), none = dir.path("none");
  const std::vector<Mistake> mistakes = {
      {a, "one run and nothing chosen of it"},
      {a + " " + none, "none/run.json: cannot be read"},
      {a + " " + a + " " + a, ""},
      {a + " --a ep_siz=4", "nearest: 'ep_size'"},
      {a + " --a ep_size=5", "leaves no point"},
      {a + " --a ep_size", "expected KEY=VALUE"},
      {a + " --a ep_size=4", "B has more than one point"},
      {a + " --a concurrency=fixed_global --b concurrency=fixed_per_rank",
       "concurrency: fixed_global in A, fixed_per_rank in B"},
      {a + " " + a + " --allow hardwear", "nearest: 'hardware'"},
      {a + " " + a + " --fail-on regression:5", "expected regression:PERCENT%"}};
  for (const Mistake& mistake : mistakes) {
    const ProgramResult result = compare(mistake.options);
    EXPECT_EQ(result.exit_code, 2) << mistake.options << "\n" << result.out;
    EXPECT_THAT(result.err, HasSubstr(mistake.said));
    if (mistake.said.empty()) continue;  // the option parser's own words
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }
}

}  // namespace
}  // namespace epsweep
