// `replay`, `report --stages --ranks` and `import-nccl-tests`, as a user starts them.
#include <filesystem>

#include <gmock/gmock.h>

#include "base/text.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Two ranks of one host, with what the caller adds to the point.
std::string replay_text_of(const std::string& regime, const std::string& more) {
  std::string ranks;
  for (const char* rank : {"0", "1"}) {
    ranks += std::string(ranks.empty() ? "" : ", ") + "{\"rank\": " + rank +
             ", \"group\": 0, \"stages\": {\"dispatch\": {\"duration_s\": [4e-6, 5e-6]}}}";
  }
  return "{\"format\": \"epsweep_replay\", \"schema_version\": \"1.0\", \"tool\": \"t\", "
         "\"points\": "
         "[{\"name\": \"p\", \"ep_size\": 2, \"warmup\": 1, \"regime\": \"" +
         regime + "\", " + more + "\"ranks\": [" + ranks + "]}]}";
}

// What a run printed and stored is what its arrays give, with two groups, an idle rank and layers.
TEST(Replay, OfARunEqualsWhatTheRunPrinted) {
  const TempDir dir;
  const std::string experiment = dir.write(
      "x.yaml",
      toy_experiment({"layers: 2", "iterations: 6", "exchange_unit: [assignment, rank]"}));
  const ProgramResult run = run_on_ranks(3, "run " + experiment + " --out " + dir.path("out"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string before = read_text_file(dir.path("out/points.jsonl"));
  const ProgramResult replay = run_program("replay " + dir.path("out"));
  EXPECT_EQ(replay.exit_code, 0) << replay.err;
  EXPECT_THAT(run.out, HasSubstr(replay.out.substr(0, replay.out.size() - 1)));
  EXPECT_EQ(replay.out, run_program("report " + dir.path("out")).out);
  EXPECT_EQ(run_program("replay --json " + dir.path("out")).out,
            run_program("report --json " + dir.path("out")).out);
  EXPECT_EQ(read_text_file(dir.path("out/points.jsonl")), before);

  const ProgramResult tables = run_program("report " + dir.path("out") + " --stages --ranks");
  EXPECT_EQ(tables.exit_code, 0) << tables.err;
  EXPECT_THAT(tables.out, AllOf(HasSubstr("Stages, regime aligned"), HasSubstr("\n> "),
                                HasSubstr("Layer, regime chained"), HasSubstr("▁")));
  EXPECT_EQ(run_program("report " + dir.path("out") + " --ranks all").exit_code, 0);
  EXPECT_EQ(run_program("report " + dir.path("out") + " --ranks some").exit_code, 2);

  std::filesystem::resize_file(dir.path("out/timings/0000.npy"), 1000);
  const ProgramResult damaged = run_program("replay " + dir.path("out"));
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_EQ(damaged.out, "");
  EXPECT_THAT(damaged.err, HasSubstr("0000.npy"));
}

// Of ranks whose clocks were aligned the bound decides who may be called last.
TEST(Replay, OfARunWithTwoClocksEqualsIt) {
  const TempDir dir;
  const std::string experiment = dir.write("x.yaml", toy_experiment({"ep_sizes: [2]"}));
  const ProgramResult run = run_on_ranks(
      2, "run " + experiment + " --out " + dir.path("out") + " --inject slow_clock:rank=1");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(records_of(dir.path("out"))[0]["all_stages"]["order_bound_us"], 0);
  EXPECT_EQ(run_program("replay --json " + dir.path("out")).out,
            run_program("report --json " + dir.path("out")).out);
}

TEST(Replay, ExitCodesOfFiles) {
  const TempDir dir;
  const std::string good = dir.write("good.json", replay_text_of("aligned", ""));
  const ProgramResult fine = run_program("replay " + good);
  EXPECT_EQ(fine.exit_code, 0) << fine.err;
  EXPECT_THAT(fine.out, HasSubstr("null: stages.dispatch.exchange: durations only"));
  EXPECT_EQ(parse_json(run_program("replay --json " + good).out, "json")["points"].size(), 1U);
  // Case C36.
  const std::string wrong = dir.write(
      "wrong.json", replay_text_of("aligned",
                                   "\"expected_transport\": \"ib\", \"transports\": [{\"from\": 0, "
                                   "\"to\": 1, \"transport\": \"SHM/direct\"}], "));
  const ProgramResult failed = run_program("replay " + wrong);
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_THAT(failed.out, HasSubstr("ranks 0 and 1: labelled ib, the log shows shm"));
  // Case C37.
  const std::string back = dir.write("back.json", replay_text_of("chained", ""));
  const ProgramResult refused = run_program("replay " + good + " " + back);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("points[0].regime: 'p' is chained here and aligned in"));
  EXPECT_EQ(run_program("replay " + dir.path("nothing")).exit_code, 2);
  EXPECT_EQ(run_program("replay").exit_code, 2);
}

TEST(ImportNcclTests, WritesAFileThatReplays) {
  const TempDir dir;
  const std::string result = dir.write(
      "n.json",
      "{\"version\": 3, \"args\": [\"alltoall_perf\", \"-I\", \"1\"], \"nccl_version\": 23007, "
      "\"config\": {\"nthreads\": 1, \"ngpus\": 1, \"warmup_iters\": 1, \"aggregated_iterations\": "
      "1, \"blocking_collectives\": \"false\"}, \"results\": [{\"size\": 64, \"out_of_place\": "
      "{\"time\": 3.5, \"nwrong\": 0.0}, \"out_of_place_per_iter\": {\"times_us\": [3, 4], "
      "\"per_process_max_times_us\": [[3, 3], [2, 4]]}}]}");
  const ProgramResult made =
      run_program("import-nccl-tests " + result + " --out " + dir.path("r.json"));
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.err, HasSubstr("note: no transports"));
  const ProgramResult replay = run_program("replay " + dir.path("r.json"));
  EXPECT_EQ(replay.exit_code, 0) << replay.err;
  EXPECT_THAT(replay.out, HasSubstr("alltoall_perf 64 bytes, EP2"));
  EXPECT_EQ(run_program("import-nccl-tests " + result + " --out " + dir.path("r.json")).exit_code,
            2);
  EXPECT_EQ(run_program("import-nccl-tests " + dir.path("r.json")).exit_code, 2);
}

}  // namespace
}  // namespace epsweep
