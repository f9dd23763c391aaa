// Case C58: which states end the program with which code.
#include <gmock/gmock.h>

#include "app/coordinator.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

TEST(ExitCode, FollowsTheWorstState) {
  using enum PointState;
  EXPECT_EQ(exit_code_of({measured, measured}), ExitCode::ok);
  EXPECT_EQ(exit_code_of({measured, failed, skipped}), ExitCode::verification);
  EXPECT_EQ(exit_code_of({unverified, measured}), ExitCode::verification);
  EXPECT_EQ(exit_code_of({impossible, measured, skipped}), ExitCode::verification);
  EXPECT_EQ(exit_code_of({measured, skipped}), ExitCode::incomplete);
  EXPECT_EQ(exit_code_of({stopped}), ExitCode::incomplete);
  EXPECT_EQ(exit_code_of({empty}), ExitCode::incomplete);
}

TEST(ExitCode, OnePointThatFailsOfFiveKeepsTheOthers) {
  const TempDir dir;
  const std::string experiment = dir.write(
      "x.yaml", toy_experiment({"ep_sizes: [1, 2, 4]", "concurrency: {fixed_global: [16, 32]}"}));
  const ProgramResult result = run_on_ranks(4, "run " + experiment + " --out " + dir.path("out") +
                                                   " --inject skip_expert:rank=1:ep_size=2");
  EXPECT_EQ(result.exit_code, 3);
  int measured = 0, failed = 0;
  for (const Json& record : records_of(dir.path("out"))) {
    measured += record["state"] == "measured" ? 1 : 0;
    failed += record["state"] == "failed" ? 1 : 0;
  }
  EXPECT_EQ(measured, 4);
  EXPECT_EQ(failed, 2);
}

TEST(ExitCode, AllPointsThatFailAreAllRecorded) {
  const TempDir dir;
  const std::string experiment = dir.write("x.yaml", toy_experiment());
  const ProgramResult result = run_on_ranks(
      2, "run " + experiment + " --out " + dir.path("out") + " --inject skip_expert:rank=0");
  EXPECT_EQ(result.exit_code, 3);
  const std::vector<Json> records = records_of(dir.path("out"));
  ASSERT_EQ(records.size(), 2U);
  for (const Json& record : records) EXPECT_EQ(record["state"], "failed");
}

TEST(ExitCode, ACheckThatBreaksIsUnverifiedAndNotWrong) {
  const TempDir dir;
  const std::string experiment = dir.write("x.yaml", toy_experiment());
  const ProgramResult result = run_on_ranks(2, "run " + experiment + " --out " + dir.path("out") +
                                                   " --inject check_error:rank=1:ep_size=2");
  EXPECT_EQ(result.exit_code, 3);
  const std::vector<Json> records = records_of(dir.path("out"));
  EXPECT_EQ(records.at(0)["state"], "measured");
  EXPECT_EQ(records.at(1)["state"], "unverified");
  EXPECT_THAT(records.at(1)["reason"].get<std::string>(), HasSubstr("could not finish"));
}

}  // namespace
}  // namespace epsweep
