// Sweeps on real ranks, as launch/mpirun.sh starts them.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "base/text.h"
#include "report/timing_table.h"
#include "support/program.h"

namespace epsweep {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct ToyRun {
  ProgramResult result;
  std::vector<Json> records;
};

ToyRun run_toy(int ranks, const std::vector<std::string>& changes,
               const std::string& options = "") {
  const TempDir dir;
  ToyRun run;
  run.result = run_on_ranks(ranks, "run " + dir.write("x.yaml", toy_experiment(changes)) +
                                       " --out " + dir.path("out") + " " + options);
  if (fs::exists(dir.path("out"))) run.records = records_of(dir.path("out"));
  return run;
}

TEST(Run, MeasuresEveryPointAndLeavesReadableFiles) {
  const TempDir dir;
  const std::string experiment =
      dir.write("x.yaml", toy_experiment({"layers: 2", "transport: [pairwise, alltoallv]"}));
  const ProgramResult run = run_on_ranks(2, "run " + experiment + " --out " + dir.path("out"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<Json> records = records_of(dir.path("out"));
  ASSERT_EQ(records.size(), 4U);
  for (const Json& record : records) {
    EXPECT_EQ(record["state"], "measured");
    EXPECT_EQ(record["check"]["verdict"], "passed");
    EXPECT_GT(record["stages"]["expert_ffn"]["slowest_us"]["p50"].get<double>(), 0);
    EXPECT_EQ(record["stages"]["expert_ffn"]["slowest_us"]["num_samples"], 3);
    EXPECT_EQ(record["routing_checksum"], records[0]["routing_checksum"]);
    const TimingTable times =
        read_npy(dir.path("out/" + record["timings_file"].get<std::string>()));
    EXPECT_EQ(times.num_iterations(), 3);
    EXPECT_EQ(times.num_layers(), 2);
    EXPECT_EQ(times.num_ranks(), 2);  // groups: fill
    const Json& down = record["m_distribution"]["down"];
    EXPECT_EQ(down["routed_rows"], record["ffn"]["routed_rows"]);
    EXPECT_EQ(down["stored_rows"], down["routed_rows"]);
    ASSERT_EQ(down["per_layer"]["kernel_calls"].size(), 2U);
    EXPECT_EQ(down["per_layer"]["kernel_calls"][1].size(), record["point"]["ep_size"]);
    EXPECT_EQ(down["per_layer"]["routed_rows"], record["rows_per_rank"]["per_layer"]);
  }
  EXPECT_GT(fs::file_size(dir.path("out/points.csv")), 0U);
  const Json facts = parse_json(read_text_file(dir.path("out/run.json")), "run.json");
  EXPECT_EQ(facts["experiment"]["seed"], 1);
  EXPECT_EQ(facts["exit_code"], 0);

  // What the run printed is what a later report prints.
  const ProgramResult report = run_program("report " + dir.path("out"));
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr(report.out.substr(0, report.out.size() - 1)));
  EXPECT_EQ(
      parse_json(run_program("report --json " + dir.path("out")).out, "json")["points"].size(), 4U);
  EXPECT_EQ(run_program("report --csv " + dir.path("out")).out,
            read_text_file(dir.path("out/points.csv")));
}

TEST(Run, CountersAreReadWhereTheKernelAllowsThem) {
  EXPECT_EQ(run_toy(1, {"ep_sizes: [1]"}).records.at(0)["counters"], nullptr);
  const Json counters = run_toy(2, {"ep_sizes: [2]"}, "--counters").records.at(0)["counters"];
  ASSERT_EQ(counters.size(), 2U);
  for (const Json& rank : counters) {
    const bool counted = rank["cycles"].is_number() && rank["instructions"].is_number();
    EXPECT_TRUE(counted ? rank["instructions"].get<double>() > 1e4 : rank["why_not"].is_string())
        << rank;
  }
}

// All EP sizes meet the same steps in the same order.
TEST(Run, RoutingThatVariesIsTheSameForEveryEpSize) {
  const auto run = run_toy(
      2, {"ep_sizes: [1, 2]", "layers: 2", "vary_routing: 3", "exchange_unit: [assignment, rank]"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  ASSERT_EQ(run.records.size(), 4U);
  const Json fixed = run_toy(2, {"ep_sizes: [1]", "layers: 2"}).records.at(0);
  for (const Json& record : run.records) {
    EXPECT_EQ(record["state"], "measured");
    EXPECT_EQ(record["routing_checksum"], run.records[0]["routing_checksum"]);
    EXPECT_NE(record["routing_checksum"], fixed["routing_checksum"]);
    const Json& rows = record["rows_per_expert"]["per_layer"];
    ASSERT_EQ(rows.size(), 6U);
    EXPECT_EQ(rows[1], fixed["rows_per_expert"]["per_layer"][1]);
    EXPECT_NE(rows[3], rows[1]);
    EXPECT_EQ(record["ffn"]["routed_rows"], 3 * fixed["ffn"]["routed_rows"].get<int>());
    // Rates are of the times of one layer.
    const double ffn_s = record["stages"]["expert_ffn"]["slowest_us"]["p50"].get<double>() * 1e-6;
    const double flops = record["ffn"]["flops"].get<double>() / 6;
    EXPECT_NEAR(record["metrics"]["ffn_gflop_per_s_per_rank"].get<double>(),
                flops / record["point"]["ep_size"].get<double>() / ffn_s * 1e-9, 1e-6);
  }
}

TEST(Run, SecondRunIntoTheSameDirectoryIsRefused) {
  const TempDir dir;
  const std::string arguments =
      "run " + dir.write("x.yaml", toy_experiment({"ep_sizes: [1]"})) + " --out " + dir.path("out");
  EXPECT_EQ(run_on_ranks(1, arguments).exit_code, 0);
  const std::string before = read_text_file(dir.path("out/points.jsonl"));
  EXPECT_EQ(run_on_ranks(1, arguments).exit_code, 2);
  EXPECT_EQ(read_text_file(dir.path("out/points.jsonl")), before);
  EXPECT_EQ(run_on_ranks(1, "run " + dir.path("x.yaml") + " --out " + dir.path("no/such/parent"))
                .exit_code,
            2);
}

TEST(Run, DryRunShowsThePlanAndWritesNothing) {
  const ToyRun run = run_toy(2, {}, "--dry-run");
  EXPECT_EQ(run.result.exit_code, 0);
  EXPECT_THAT(run.result.out, HasSubstr("plan checksum"));
  EXPECT_TRUE(run.records.empty());
}

TEST(Run, CaseC04TokensThatDoNotDivide) {
  const ToyRun run = run_toy(8, {"ep_sizes: [8]", "concurrency: {fixed_global: [100]}"});
  EXPECT_EQ(run.result.exit_code, 0) << run.result.err;
  EXPECT_THAT(run.records.at(0)["tokens_per_rank"], ElementsAre(13, 13, 13, 13, 12, 12, 12, 12));
}

// Case C06: several groups at once, or one group and idle ranks that are named.
TEST(Run, CaseC06EpSizeBelowTheWorld) {
  const ToyRun fill = run_toy(4, {"ep_sizes: [2]"});
  EXPECT_EQ(fill.records.at(0)["num_groups"], 2);
  EXPECT_THAT(fill.records.at(0)["idle_ranks"], ElementsAre());
  const ToyRun single = run_toy(4, {"ep_sizes: [2]", "groups: single"});
  EXPECT_EQ(single.records.at(0)["num_groups"], 1);
  EXPECT_THAT(single.records.at(0)["idle_ranks"], ElementsAre(2, 3));
  const ToyRun uneven = run_toy(5, {"ep_sizes: [2]", "mapping: spread"});
  EXPECT_THAT(uneven.records.at(0)["idle_ranks"], ElementsAre(4));
}

TEST(Run, ReplicasOfHotExpertsAreMeasuredAndChecked) {
  const ToyRun run = run_toy(
      4, {"ep_sizes: [4]", "layers: 2", "placement: [contiguous, eplb]", "redundant_slots: 4",
          "routing: {distribution: zipf, zipf_alpha: 1.5}", "concurrency: {fixed_global: [200]}"});
  ASSERT_EQ(run.result.exit_code, 0) << run.result.err;
  ASSERT_EQ(run.records.size(), 2U);
  const Json &plain = run.records[0], &replicated = run.records[1];
  EXPECT_EQ(replicated["check"]["verdict"], "passed");
  EXPECT_EQ(replicated["point"]["redundant_slots"], 4);
  EXPECT_EQ(replicated["placement_fitted_on"], "own trace (in-sample)");
  EXPECT_EQ(plain["placement_fitted_on"], nullptr);
  EXPECT_EQ(replicated["routing_checksum"], plain["routing_checksum"]);
  EXPECT_EQ(replicated["ffn"]["routed_rows"], plain["ffn"]["routed_rows"]);
  EXPECT_LT(replicated["rows_per_rank"]["max_over_mean"].get<double>(),
            plain["rows_per_rank"]["max_over_mean"].get<double>());
  // Three slots on every rank instead of two.
  EXPECT_EQ(2 * replicated["memory"]["weight_bytes_per_rank"][3].get<std::int64_t>(),
            3 * plain["memory"]["weight_bytes_per_rank"][3].get<std::int64_t>());
}

TEST(Run, CaseC09RanksWithoutExperts) {
  const ToyRun skipped = run_toy(4, {"ep_sizes: [2, 4]",
                                     "model: {name: m, hidden_dim: 8, ffn_dim: 8, num_experts: 3, "
                                     "top_k: 2, num_moe_layers: 1}"});
  EXPECT_EQ(skipped.result.exit_code, 4);
  EXPECT_EQ(skipped.records.at(1)["state"], "skipped");
  EXPECT_THAT(skipped.records.at(1)["reason"].get<std::string>(), HasSubstr("3 experts"));
  const ToyRun allowed = run_toy(4,
                                 {"ep_sizes: [4]",
                                  "model: {name: m, hidden_dim: 8, ffn_dim: 8, num_experts: 3, "
                                  "top_k: 2, num_moe_layers: 1}"},
                                 "--set allow_empty_ranks=true");
  EXPECT_EQ(allowed.result.exit_code, 0) << allowed.result.err;
  EXPECT_EQ(allowed.records.at(0)["state"], "measured");
}

TEST(Run, CaseC12Ep1HasNoRemoteBytesAndNoBandwidth) {
  const ToyRun run = run_toy(1, {"ep_sizes: [1]"});
  const Json& record = run.records.at(0);
  EXPECT_EQ(record["bytes"]["dispatch"]["a_remote_bytes"], 0);
  EXPECT_EQ(record["bytes"]["dispatch"]["a_self_bytes"], 16 * 2 * 64 * 2);
  EXPECT_TRUE(record["metrics"]["dispatch_a_remote_gb_per_s_per_rank"].is_null());
}

// Ranks of one launch script share this host; a declared topology wins over what is found.
TEST(Run, DomainsAreDeclaredOrTheHostsOfTheRanks) {
  const Json found = run_toy(2, {"ep_sizes: [2]"}).records.at(0)["bytes"];
  EXPECT_EQ(found["places"], "measured hosts");
  EXPECT_EQ(found["num_domains"], 1);
  EXPECT_EQ(found["dispatch"]["e_total_copies"], 0);
  EXPECT_EQ(found["dispatch"]["a_inter_copies"], 0);
  EXPECT_EQ(found["dispatch"]["b_intra_copies"], found["dispatch"]["d_total_copies"]);
  EXPECT_EQ(found["dispatch"]["c_total_copies"], 16);
  const Json declared =
      run_toy(2, {"ep_sizes: [2]", "topology: {ranks_per_host: 1}"}).records.at(0)["bytes"];
  EXPECT_EQ(declared["places"], "declared");
  EXPECT_EQ(declared["num_domains"], 2);
  EXPECT_EQ(declared["dispatch"]["d_total_copies"], found["dispatch"]["d_total_copies"]);
  EXPECT_EQ(declared["dispatch"]["e_total_copies"], declared["dispatch"]["d_total_copies"]);
  EXPECT_EQ(declared["dispatch"]["b_intra_copies"], 0);
}

TEST(Run, CaseC49EpAboveTheWorldIsOneLineAndExitTwo) {
  const ToyRun run = run_toy(4, {"ep_sizes: [2, 8]"});
  EXPECT_EQ(run.result.exit_code, 2);
  EXPECT_THAT(run.result.err, AllOf(HasSubstr("EP 8"), HasSubstr("4 ranks"), HasSubstr(": 2;")));
  const std::string::size_type first = run.result.err.find("ep_sizes asks");
  EXPECT_EQ(run.result.err.find("ep_sizes asks", first + 1), std::string::npos);
  EXPECT_TRUE(run.records.empty());
}

// Case C50: started without a launcher inside a Slurm job.
TEST(Run, CaseC50SingletonsInsideASlurmJobAreRefused) {
  const TempDir dir;
  const std::string arguments =
      "run " + dir.write("x.yaml", toy_experiment({"ep_sizes: [1]"})) + " --out " + dir.path("out");
  const ProgramResult refused = run_program(arguments, "SLURM_NTASKS=8 SLURM_PROCID=0");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("MPI sees 1 process"), HasSubstr("8"), HasSubstr("srun --mpi=pmix")));
  EXPECT_FALSE(fs::exists(dir.path("out")));
  EXPECT_EQ(run_program(arguments, "SLURM_NTASKS=1 SLURM_PROCID=0").exit_code, 0);
}

// Case C52: zeros everywhere, strict JSON, and an empty point is not a success.
TEST(Run, CaseC52ZeroTokens) {
  const ToyRun one_empty_rank =
      run_toy(8, {"ep_sizes: [8]", "concurrency: {tokens_per_rank: [2, 2, 2, 0, 2, 2, 2, 2]}"});
  EXPECT_EQ(one_empty_rank.result.exit_code, 0) << one_empty_rank.result.err;
  EXPECT_EQ(one_empty_rank.records.at(0)["tokens_per_rank"][3], 0);
  const ToyRun one_expert =
      run_toy(8, {"ep_sizes: [8]",
                  "model: {name: m, hidden_dim: 64, ffn_dim: 32, num_experts: 8, top_k: 1, "
                  "num_moe_layers: 1}",
                  "routing: {distribution: k_hot, num_hot: 1, hot_fraction: 1}"});
  EXPECT_EQ(one_expert.result.exit_code, 0) << one_expert.result.err;
  EXPECT_EQ(one_expert.records.at(0)["rows_per_expert"]["max"], 16);
  const ToyRun nothing = run_toy(8, {"ep_sizes: [8]", "concurrency: {fixed_global: [0]}"});
  EXPECT_EQ(nothing.result.exit_code, 4) << nothing.result.err;
  EXPECT_EQ(nothing.records.at(0)["state"], "empty");
  EXPECT_TRUE(nothing.records.at(0)["metrics"].is_null());
  EXPECT_TRUE(nothing.records.at(0)["check"].is_null());
}

// Case C55: found before anything is exchanged.
TEST(Run, CaseC55MismatchedPlansNameTheRank) {
  const ToyRun run = run_toy(4, {"ep_sizes: [4]"}, "--inject plan_seed:rank=2");
  EXPECT_EQ(run.result.exit_code, 2);
  EXPECT_THAT(run.result.err, AllOf(HasSubstr("rank 2"), HasSubstr("plan checksums")));
  EXPECT_TRUE(run.records.empty());
}

TEST(Run, MoreRanksThanCoresIsSaidInTheRecordAndTheTables) {
  const ToyRun run = run_toy(8, {"ep_sizes: [8]"});
  ASSERT_EQ(run.records.size(), 1U);
  const bool oversubscribed = run.records[0]["load"]["oversubscribed"].get<bool>();
  EXPECT_EQ(oversubscribed, run.records[0]["load"]["ranks"] > run.records[0]["load"]["cores"]);
  EXPECT_EQ(run.result.out.find("not fit for comparison") != std::string::npos, oversubscribed);
}

TEST(Run, ASignalStopsTheSweepAndKeepsTheRecords) {
  const TempDir dir;
  const std::string experiment = dir.write(
      "x.yaml", toy_experiment({"ep_sizes: [1, 2]", "iterations: 400000", "weight_cache: warm"}));
  const std::string arguments = "run " + experiment + " --out " + dir.path("out");
  // The ranks get the signal, not mpirun, once the sweep runs; only they have this command line.
  const std::string interrupt =
      "(for i in $(seq 300); do [ -e " + dir.path("out/points.jsonl") +
      " ] && break; sleep 0.1; done; sleep 0.5; pkill -INT -fx '" EPSWEEP_PROGRAM " " + arguments +
      "') >/dev/null 2>&1 &";
  ASSERT_EQ(std::system(interrupt.c_str()), 0);
  const ProgramResult result = run_on_ranks(2, arguments);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  const std::vector<Json> records = records_of(dir.path("out"));
  ASSERT_EQ(records.size(), 2U);
  for (const Json& record : records) EXPECT_EQ(record["state"], "stopped");
}

}  // namespace
}  // namespace epsweep
