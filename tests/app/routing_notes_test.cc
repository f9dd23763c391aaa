// What routings say about themselves, in plans and results.
#include <gmock/gmock.h>

#include "base/text.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// 1,000 equal tokens in front of 20 others, for the toy model (8 experts, top_k 2).
std::string trace_with_dummies() {
  std::string text = "{\"meta\": 1}\n";
  for (int i = 0; i < 1000; ++i) text += "{\"layer\": 0, \"experts\": [6, 7]}\n";
  for (int i = 0; i < 20; ++i) {
    const std::string first = std::to_string(i % 7), second = std::to_string(i % 7 + 1);
    text += "{\"layer\": 0, \"experts\": [" + first + ", " + second + "]}\n";
  }
  return text;
}

constexpr const char* kAdvice = "skip_tokens: 1000 and max_tokens: 20 take the longest part";

TEST(RoutingNotes, PlansShowThemOncePerRouting) {
  const TempDir dir;
  dir.write("trace.jsonl", trace_with_dummies());
  const std::string file = dir.write(
      "x.yaml",
      toy_experiment(
          {"routing: [{distribution: recorded_trace, trace_file: trace.jsonl}, uniform]"}));
  const ProgramResult table = run_program("plan " + file);
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("warning: recorded_trace(file=trace.jsonl"),
                               HasSubstr("1000 of 1020 tokens repeat"), HasSubstr(kAdvice)));
  const Json plan = parse_json(run_program("plan --json " + file).out, "plan");
  ASSERT_EQ(plan["notes"].size(), 1U);  // two EP sizes
  EXPECT_EQ(plan["notes"][0]["kind"], "warning");
  EXPECT_THAT(plan["notes"][0]["text"].get<std::string>(), HasSubstr(kAdvice));
  EXPECT_THAT(plan["notes"][0]["routing"].get<std::string>(), HasSubstr("recorded_trace("));
}

TEST(RoutingNotes, FollowTheAdviceAndTheyAreGone) {
  const TempDir dir;
  dir.write("trace.jsonl", trace_with_dummies());
  const ProgramResult table = run_program(
      "plan " + dir.write("x.yaml", toy_experiment({"routing: {distribution: recorded_trace, "
                                                    "trace_file: trace.jsonl, skip_tokens: 1000, "
                                                    "max_tokens: 20}"})));
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, Not(HasSubstr("warning")));
}

TEST(RoutingNotes, ResultsKeepThem) {
  const TempDir dir;
  dir.write("trace.jsonl", trace_with_dummies());
  const std::string file = dir.write(
      "x.yaml",
      toy_experiment({"routing: [{distribution: recorded_trace, trace_file: trace.jsonl}, "
                      "{distribution: zipf, max_over_mean: 2}]",
                      "ep_sizes: [2]"}));
  const ProgramResult run = run_on_ranks(2, "run " + file + " --out " + dir.path("out"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr(kAdvice));
  const std::vector<Json> records = records_of(dir.path("out"));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_THAT(records[0]["warnings"].dump(), HasSubstr(kAdvice));
  EXPECT_TRUE(records[0]["realised_skew"].is_null());
  const Json& skew = records[1]["realised_skew"];
  EXPECT_EQ(skew["asked_max_over_mean"], 2);
  EXPECT_EQ(skew["param"], "zipf_alpha");
  // 16 tokens x 2 over 8 experts: mean 4, so within one row is 1.75 to 2.25.
  EXPECT_NEAR(skew["max_over_mean"][0].get<double>(), 2, 0.25);
  EXPECT_EQ(skew["max_over_mean"][0], records[1]["rows_per_expert"]["max_over_mean"]);
  EXPECT_THAT(records[1]["warnings"].dump(), Not(HasSubstr("skip_tokens")));
  const Json facts = parse_json(read_text_file(dir.path("out/run.json")), "run.json");
  EXPECT_THAT(facts["notes"].dump(), HasSubstr(kAdvice));
}

TEST(SkewTarget, OutOfReachIsAConfigurationError) {
  const TempDir dir;
  const ProgramResult plan =
      run_program("plan " + dir.write("x.yaml", toy_experiment({"routing: {distribution: zipf, "
                                                                "max_over_mean: 40}"})));
  EXPECT_EQ(plan.exit_code, 2);
  // 2 of 8 experts: at most 4 times the mean.
  EXPECT_THAT(plan.err,
              AllOf(HasSubstr("max_over_mean 40 is outside"), HasSubstr("..4, what zipf")));
}

}  // namespace
}  // namespace epsweep
