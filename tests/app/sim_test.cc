// `--backend sim` as a user starts it: one process, and nothing of it looks measured.
#include <fstream>

#include <gmock/gmock.h>

#include "base/text.h"
#include "report/timing_table.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::HasSubstr;
using testing::Not;

// EP8 in a world of 16, ranks alike: every expert has the same rows.
std::string sim_experiment(const std::vector<std::string>& changes = {}) {
  std::vector<std::string> lines = {"ep_sizes: [8]", "routing: balanced", "iterations: 40",
                                    "concurrency: {fixed_global: [64]}"};
  lines.insert(lines.end(), changes.begin(), changes.end());
  return toy_experiment(lines);
}

TEST(SimRun, SaysThatItIsSimulated) {
  const TempDir dir;
  const std::string out = dir.path("out");
  const ProgramResult result = run_program("run " + dir.write("x.yaml", sim_experiment()) +
                                           " --backend sim --ranks 16 --out " + out);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("1 points: 1 simulated"));
  EXPECT_THAT(result.out, HasSubstr("S simulated: a virtual clock and declared costs; nothing was "
                                    "measured or checked"));
  EXPECT_THAT(result.out, HasSubstr("\nS   8         64"));  // in every table
  EXPECT_THAT(result.out, Not(HasSubstr("1 measured")));
  const std::vector<Json> records = records_of(out);
  ASSERT_EQ(records.size(), 1U);
  const Json& record = records[0];
  EXPECT_EQ(record["state"], "simulated");
  EXPECT_EQ(record["check"]["verdict"], "not_run");
  EXPECT_EQ(record["check"]["tokens_checked"], 0);
  EXPECT_EQ(record["world_size"], 16);
  EXPECT_EQ(record["num_groups"], 2);
  EXPECT_EQ(record["layer"]["weights"], "declared");
  // By default eight ranks share a host; NVLink's 13 us and a few rows.
  EXPECT_NEAR(record["stages"]["dispatch"]["exchange"]["transfer_us"]["p50"].get<double>(), 13,
              0.1);
  const Json run = parse_json(read_text_file(out + "/run.json"), "run.json");
  EXPECT_EQ(run["backend"], "sim");
  EXPECT_EQ(run["simulated"], true);
  EXPECT_EQ(run["sim"]["ranks"], 16);
  EXPECT_EQ(run["sim"]["topology_assumed"], true);
  EXPECT_EQ(run["experiment"]["topology"], Json({{"hosts", 2}, {"ranks_per_host", 8}}));
  EXPECT_EQ(run["sim"]["costs"]["ffn"]["flop_per_s"], 861e12);
  EXPECT_EQ(run["provenance"]["device"], "virtual clock");
  EXPECT_EQ(read_npy(out + "/" + record["timings_file"].get<std::string>()).num_ranks(), 16);
}

// An injected delay is found where it was put, and in the other group nothing changes.
TEST(SimRun, FindsAnInjectedDelay) {
  const TempDir dir;
  const std::string out = dir.path("out");
  const ProgramResult result = run_program(
      "run " + dir.write("x.yaml", sim_experiment()) + " --backend sim --ranks 16 --out " + out +
      " --inject delay:rank=13:stage=dispatch:us=20000"
      " --inject delay:rank=2:stage=expert_ffn:us=500:place=inside:every=2:first=0"
      " --inject delay:rank=3:stage=expert_ffn:us=500:place=inside:every=2:first=1");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json record = records_of(out).at(0);
  const Json& dispatch = record["stages"]["dispatch"]["exchange"];
  EXPECT_NEAR(dispatch["skew_in_us"]["p50"].get<double>(), 20000, 1e-5);
  EXPECT_EQ(dispatch["last_in_rank"], 13);
  EXPECT_EQ(dispatch["last_in_share"], 1.0);
  for (std::size_t rank = 0; rank < 16; ++rank) {
    EXPECT_NEAR(dispatch["wait_p50_us_of_rank"][rank].get<double>(),
                rank < 8 || rank == 13 ? 0 : 20000, 1e-5)
        << rank;
  }
  EXPECT_NEAR(dispatch["transfer_us"]["p50"].get<double>(), 13, 0.1);
  EXPECT_EQ(record["stages"]["expert_ffn"]["slowest_rank"], 2);
  EXPECT_THAT(result.out, HasSubstr("2 (50%) alternates"));
}

TEST(SimRun, CostsAndNoiseAreThoseOfTheExperiment) {
  const TempDir dir;
  const std::string text = sim_experiment(
      {"repeats: 2", "topology: {hosts: 4, ranks_per_host: 4}",
       "sim: {stages_us: {expert_ffn: 100}, ranks: {3: {slowdown: 2}}, noise: {relative: 0.01}}"});
  const std::string file = dir.write("x.yaml", text);
  for (const char* out : {"a", "b"}) {
    const ProgramResult result =
        run_program("run " + file + " --backend sim --out " + dir.path(out));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  const std::vector<Json> a = records_of(dir.path("a")), b = records_of(dir.path("b"));
  ASSERT_EQ(a.size(), 2U);
  EXPECT_EQ(a[0]["world_size"], 16);  // of the topology
  EXPECT_EQ(a[0]["stages"]["expert_ffn"]["slowest_rank"], 3);
  EXPECT_NEAR(a[0]["stages"]["expert_ffn"]["slowest_us"]["p50"].get<double>(), 200, 2);
  // Between hosts: 25 us, of the slow rank twice.
  EXPECT_NEAR(a[0]["stages"]["dispatch"]["exchange"]["transfer_us"]["p50"].get<double>(), 50, 2);
  EXPECT_EQ(a[0]["stages"], b[0]["stages"]);                            // again the same noise
  EXPECT_NE(a[0]["layer"]["slowest_us"], a[1]["layer"]["slowest_us"]);  // another repeat's
}

TEST(SimRun, RunsAsManyIterationsAsThePrecisionNeeds) {
  const TempDir dir;
  const std::string file =
      dir.write("x.yaml", sim_experiment({"iterations: 10", "iteration_target: {precision: 0.002}",
                                          "sim: {noise: {relative: 0.05}}"}));
  const ProgramResult result = run_program("run " + file + " --backend sim --out " + dir.path("o"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json record = records_of(dir.path("o")).at(0);
  EXPECT_EQ(record["layer"]["pass"]["stop"], "precision");
  EXPECT_LE(record["layer"]["pass"]["precision"].get<double>(), 0.002);
  EXPECT_GT(record["layer"]["slowest_us"]["num_samples"].get<int>(), 10);
}

// Rank 5 reads 5 ms less and loses 50 ppm; its marks are where they were without that. Who is late
// by less than an alignment over links of 13 us can tell is not said.
TEST(SimRun, ASlowClockMovesNothing) {
  const TempDir dir;
  const std::string file = dir.write("x.yaml", sim_experiment());
  const std::string late =
      " --inject delay:rank=2:stage=dispatch:us=300"
      " --inject delay:rank=2:stage=combine:us=10";
  for (const char* run : {"clean", "slow"}) {
    const std::string clock = std::string(run) == "slow" ? " --inject slow_clock:rank=5" : "";
    const ProgramResult result =
        run_program("run " + file + " --backend sim --out " + dir.path(run) + late + clock);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  const Json clean = records_of(dir.path("clean")).at(0), slow = records_of(dir.path("slow")).at(0);
  for (const char* stage : {"dispatch", "combine"}) {
    for (const char* part : {"transfer_us", "skew_in_us"}) {
      EXPECT_NEAR(slow["stages"][stage]["exchange"][part]["p50"].get<double>(),
                  clean["stages"][stage]["exchange"][part]["p50"].get<double>(), 1e-5);
    }
  }
  EXPECT_NEAR(slow["layer"]["slowest_us"]["p50"].get<double>(),
              clean["layer"]["slowest_us"]["p50"].get<double>(), 1e-5);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_NEAR(slow["layer"]["p50_us_of_rank"][rank].get<double>(),
                clean["layer"]["p50_us_of_rank"][rank].get<double>(), 1e-5);
  }
  EXPECT_EQ(slow["stages"]["dispatch"]["exchange"]["last_in_rank"], 2);
  EXPECT_EQ(clean["stages"]["combine"]["exchange"]["last_in_rank"], 2);
  EXPECT_TRUE(slow["stages"]["combine"]["exchange"]["last_in_rank"].is_null());
  EXPECT_EQ(clean["clock"]["domains"], 1);
  EXPECT_EQ(slow["clock"]["domains"], 2);
  EXPECT_NEAR(slow["clock"]["worst_drift_ppm"].get<double>(), 50, 0.01);
}

// What a report makes of stored times is what the run made of them, and says what they are.
TEST(SimRun, IsReportedAgainAsSimulated) {
  const TempDir dir;
  const std::string out = dir.path("out");
  ASSERT_EQ(run_program("run " + dir.write("x.yaml", sim_experiment()) +
                        " --backend sim --ranks 16 --out " + out +
                        " --inject delay:rank=13:stage=dispatch:us=20000")
                .exit_code,
            0);
  const ProgramResult stages = run_program("report " + out + " --stages");
  EXPECT_EQ(stages.exit_code, 0) << stages.err;
  EXPECT_THAT(stages.out, HasSubstr(", simulated\n"));
  EXPECT_THAT(stages.out, HasSubstr("13 (100%)"));
  const ProgramResult replayed = run_program("replay " + out + " --json");
  ASSERT_EQ(replayed.exit_code, 0) << replayed.err;
  const Json stored = records_of(out).at(0),
             again = parse_json(replayed.out, "replay")["points"].at(0);
  EXPECT_EQ(again["state"], "simulated");
  EXPECT_EQ(again["stages"], stored["stages"]);
  EXPECT_EQ(again["layer"], stored["layer"]);
  EXPECT_EQ(again["warnings"], stored["warnings"]);
  Json changed = stored;
  changed["stages"]["router"]["slowest_us"]["p50"] = 1;
  std::ofstream(out + "/points.jsonl") << to_json_line(changed) << "\n";
  const ProgramResult corrected = run_program("replay " + out + " --json");
  EXPECT_EQ(parse_json(corrected.out, "replay")["points"].at(0)["stages"], stored["stages"]);
}

struct Refusal {
  std::string options, said;
};
class SimRefusals : public ::testing::TestWithParam<Refusal> {};

TEST_P(SimRefusals, AreOneLine) {
  const TempDir dir;
  const std::string file = dir.write("x.yaml", sim_experiment());
  const ProgramResult result = run_program("run " + file + " " + GetParam().options);
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_THAT(result.err, HasSubstr(GetParam().said));
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    Options, SimRefusals,
    ::testing::Values(
        Refusal{"--backend sim --ranks 4", "ep_sizes asks for EP 8, --ranks says 4"},
        Refusal{"--backend sim --inject drop_row:rank=1", "has times only: delay or slow_clock"},
        Refusal{"--backend sim --inject delay:rank=8:stage=router:us=1", "there are 8 ranks"},
        Refusal{"--backend sim --set 'sim={links: {2-9: {extra_us: 1}}}'", "there is no rank 9"},
        Refusal{"--backend sim --set 'sim={noice: {}}'", "nearest valid key: 'noise'"},
        Refusal{"--ranks 8", "--ranks is of --backend sim"},
        Refusal{"--set transport=declared", "belongs to backend 'sim'"}));

TEST(SimRefusal, OfALaunchWithRanksIsOneLine) {
  const TempDir dir;
  const ProgramResult result =
      run_on_ranks(3, "run " + dir.write("x.yaml", sim_experiment()) + " --backend sim");
  EXPECT_EQ(result.exit_code, 2) << result.out;
  const std::string said = "start it without mpirun or srun, with --ranks 3";
  const std::size_t at = result.err.find(said);
  ASSERT_NE(at, std::string::npos) << result.err;
  EXPECT_EQ(result.err.find(said, at + 1), std::string::npos) << result.err;
}

TEST(SimList, NamesTheEngine) {
  const ProgramResult result = run_program("list");
  EXPECT_THAT(result.out, HasSubstr("virtual clock: all ranks in one process"));
  EXPECT_THAT(result.out, HasSubstr("[sim] costs what `sim` declares"));
}

}  // namespace
}  // namespace epsweep
