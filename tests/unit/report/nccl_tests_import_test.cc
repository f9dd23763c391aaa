// A file in the shape that nccl-tests 2.19 writes, made by hand.
#include "report/nccl_tests_import.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "report/replay_file.h"
#include "report/replay_record.h"

namespace epsweep {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Json result(std::int64_t size, const Json& matrix, const Json& nwrong = 0.0) {
  Json per_iteration = {{"skipped_iterations", 1}, {"min_us", 10.0},
                        {"max_us", 30.0},          {"avg_us", 20.0},
                        {"p50_us", 20.0},          {"p95_us", 30.0},
                        {"p99_us", 30.0},          {"stdev_us", 8.1},
                        {"cv_pct", 40.8},          {"times_us", {12.0, 25.0, 31.0}}};
  if (!matrix.is_null()) per_iteration["per_process_max_times_us"] = matrix;
  const Json total = {{"time", 20.0}, {"alg_bw", 52.43}, {"bus_bw", 26.21}, {"nwrong", nwrong}};
  return {{"size", size},
          {"count", size / 8},
          {"type", "float"},
          {"redop", "none"},
          {"root", "    -1"},
          {"out_of_place", total},
          {"out_of_place_per_iter", per_iteration},
          {"in_place", total},
          {"in_place_per_iter", per_iteration},
          {"actual_iterations", 3},
          {"experiment_name", ""}};
}

Json device(int rank, int group, const char* host) {
  return {{"rank", rank},        {"group", group}, {"pid", 100 + rank},
          {"hostname", host},    {"device", 0},    {"device_hex", "0000:1b:00"},
          {"device_info", "GPU"}};
}

// Two processes with a GPU each.
Json two_processes() {
  return {{"version", 3},
          {"start_time", "2026-07-09 10:00:00"},
          {"args", {"./build/alltoall_perf", "-I", "1", "-z", "3", "-J", "out.json"}},
          {"env", {"HOME=/root", "API_TOKEN=secret"}},
          {"nccl_version", 23007},
          {"config",
           {{"nthreads", 1},
            {"ngpus", 1},
            {"minimum_bytes", 1024},
            {"maximum_bytes", 1048576},
            {"step_factor", 2},
            {"warmup_iters", 5},
            {"iterations", 3},
            {"aggregated_iterations", 1},
            {"validation", 1},
            {"graph", 0},
            {"blocking_collectives", "true"},
            {"per_iter_timing", "true"},
            {"per_iter_skip", 1},
            {"parallel_init", "false"},
            {"devices", {device(0, 0, "n1"), device(1, 0, "n2")}}}},
          {"results", {result(1048576, {{10.0, 20.0, 30.0}, {12.0, 25.0, 31.0}})}},
          {"out_of_bounds", {{"count", 0}, {"okay", "true"}}},
          {"average_bus_bandwidth", {{"bandwidth", 26.2}, {"okay", "unchecked"}}},
          {"errors", Json::array()},
          {"end_time", "2026-07-09 10:00:01"}};
}

NcclTestsImport import(const Json& json) {
  return import_nccl_tests(to_json_line(json), "n.json");
}

// What a replay makes of the imported file's first point.
Json record_of(const Json& json) {
  const ReplayFile file = parse_replay(to_json_line(import(json).replay), "r.json");
  return make_replay_record(file, file.points.front());
}

std::string error_of(const Json& json) {
  try {
    import(json);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(NcclTests, TheMatrixOfProcessesBecomesTimesOfRanks) {
  const Json point = import(two_processes()).replay["points"][0];
  EXPECT_EQ(point["name"], "alltoall_perf 1048576 bytes");
  EXPECT_EQ(point["ep_size"], 2);
  EXPECT_EQ(point["regime"], "aligned");
  EXPECT_EQ(point["warmup"], 5);
  EXPECT_EQ(point["check"], "passed");
  EXPECT_EQ(point["ranks"][1]["host"], "n2");
  EXPECT_EQ(point["ranks"][1]["bytes"]["exchange"]["bytes"], 1048576);
  // Slowest process in each iteration: 12, 25, 31 us.
  const Json record = record_of(two_processes());
  EXPECT_NEAR(record["all_stages"]["slowest_us"]["p50"].get<double>(), 25, 1e-9);
  EXPECT_EQ(record["all_stages"]["slowest_rank"], 1);
  EXPECT_NEAR(record["all_stages"]["fastest_rank_p50_us"].get<double>(), 20, 1e-9);
  EXPECT_TRUE(record["stages"]["exchange"]["exchange"].is_null());
}

TEST(NcclTests, SaysWhatCannotBeMapped) {
  const NcclTestsImport result = import(two_processes());
  EXPECT_THAT(result.notes, Contains(HasSubstr("without a common clock")));
  EXPECT_THAT(result.notes, Contains(HasSubstr("no transports")));
  EXPECT_EQ(result.replay["notes"].size(), result.notes.size());
  EXPECT_THAT(to_json_line(result.replay), Not(HasSubstr("secret")));
}

TEST(NcclTests, BlockingModesAreRegimes) {
  const auto regime = [](const Json& args, const char* blocking) {
    Json json = two_processes();
    json["args"] = args;
    json["config"]["blocking_collectives"] = blocking;
    return import(json).replay["points"][0]["regime"].get<std::string>();
  };
  EXPECT_EQ(regime({"alltoall_perf", "-I", "1"}, "false"), "chained");
  EXPECT_EQ(regime({"alltoall_perf", "--blocking=3"}, "true"), "aligned");
  EXPECT_EQ(regime({"alltoall_perf", "-z3"}, "true"), "aligned");
  EXPECT_EQ(regime({"alltoall_perf", "--blocking", "1"}, "true"), "unknown");
  EXPECT_EQ(regime({"alltoall_perf", "-z", "2"}, "true"), "unknown");
}

TEST(NcclTests, ProcessesOfSeveralGpusAreOneRowEach) {
  Json json = two_processes();
  json["config"]["ngpus"] = 4;
  const NcclTestsImport result = import(json);
  EXPECT_THAT(result.notes, Contains(HasSubstr("ranks cannot be told apart")));
  const Json& point = result.replay["points"][0];
  EXPECT_EQ(point["ep_size"], 8);
  EXPECT_EQ(point["ranks_per_row"], 4);
  EXPECT_EQ(point["ranks"][0]["bytes"]["exchange"]["bytes"], 4 * 1048576);
  EXPECT_EQ(record_of(json)["point"]["ranks_per_row"], 4);
}

TEST(NcclTests, OneProcessHasNoMatrix) {
  Json json = two_processes();
  json["config"]["devices"] = {device(0, 0, "n1")};
  json["config"]["ngpus"] = 8;
  json["results"] = {result(1024, nullptr)};
  const Json point = import(json).replay["points"][0];
  ASSERT_EQ(point["ranks"].size(), 1U);
  EXPECT_EQ(point["ep_size"], 8);
  EXPECT_NEAR(record_of(json)["all_stages"]["slowest_us"]["max"].get<double>(), 31, 1e-9);
}

TEST(NcclTests, GroupsOfSplitRunsAreKept) {
  Json json = two_processes();
  json["config"]["devices"][1]["group"] = 1;
  const Json record = record_of(json);
  EXPECT_EQ(record["point"]["ep_size"], 1);
  EXPECT_EQ(record["num_groups"], 2);
}

TEST(NcclTests, WrongValuesFailThePoint) {
  Json json = two_processes();
  json["results"] = {result(1024, {{1.0}, {2.0}}, 7.0)};
  EXPECT_EQ(record_of(json)["state"], "failed");
  json["results"] = {result(1024, {{1.0}, {2.0}}, nullptr)};
  EXPECT_EQ(record_of(json)["check"], "none");
}

TEST(NcclTests, TheSameSizeAgainIsARepeat) {
  Json json = two_processes();
  json["results"] = {result(1024, {{1.0}, {2.0}}), result(1024, {{1.0}, {2.0}})};
  EXPECT_EQ(import(json).replay["points"][1]["repeat"], 1);
}

TEST(NcclTests, OtherFilesAreRefused) {
  Json json = two_processes();
  json["version"] = 2;
  EXPECT_THAT(error_of(json), HasSubstr("n.json: version: 2 is not readable, this build reads 3"));
  json = two_processes();
  json["args"][0] = "./build/all_reduce_perf";
  EXPECT_THAT(error_of(json), HasSubstr("args: 'all_reduce_perf' is not an all-to-all"));
  json = two_processes();
  json["results"][0].erase("out_of_place_per_iter");
  EXPECT_THAT(error_of(json), HasSubstr("results: means only: -I 1"));
  json = two_processes();
  json["results"][0]["out_of_place_per_iter"]["per_process_max_times_us"][1][0] = "nan";
  EXPECT_THAT(error_of(json), HasSubstr("per_process_max_times_us[1][0]: \"nan\" is not a number"));
  json = two_processes();
  Json& matrix = json["results"][0]["out_of_place_per_iter"]["per_process_max_times_us"];
  matrix[1][0] = -1;
  EXPECT_THAT(error_of(json),
              HasSubstr("per_process_max_times_us[1]: iteration 0 (from 0): -1 us"));
  matrix[1] = {1, 2};
  EXPECT_THAT(error_of(json), HasSubstr("[1]: 2 iterations, the first process has 3"));
  json = two_processes();
  json.erase("config");
  EXPECT_THAT(error_of(json), HasSubstr("has no 'config'"));
  EXPECT_THAT(error_of({{"points", 1}}), HasSubstr("not a JSON file of nccl-tests"));
  EXPECT_THAT(error_of(Json::array()), HasSubstr("not a JSON file of nccl-tests"));
}

}  // namespace
}  // namespace epsweep
