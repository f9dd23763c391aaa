// Stored runs computed again from their arrays, and arrays that somebody damaged.
#include "report/replay_run.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/text.h"
#include "report/point_record.h"
#include "report/point_tables.h"
#include "report/tables.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using ::testing::AllOf;
using testing::even_chains;
using ::testing::HasSubstr;
using testing::measured_input;
using testing::sample_point;
using testing::ScratchDir;
using testing::skipped_input;

// A point of 4 ranks whose rank 2 is slow in expert_ffn, with its arrays, and one that was skipped.
Json stored_record(RunDirectory& run) {
  SweepPoint point = sample_point(4, 8);
  point.index = 3;
  PointRecordInput input = measured_input(point);
  TimingTable stages = testing::even_times(4, point.iterations, 10e-6);
  for (int i = 0; i < point.iterations; ++i) {
    stages.at(2, i, 0, Stage::expert_ffn, Measure::end_s) += 7e-6 + i * 1e-7;
  }
  const ChainTable chains = even_chains(4, point.iterations, 80e-6);
  PassFactsOfRanks facts{
      .stop = "precision", .precision = 0.02, .disturbed = std::vector<double>(20, 0)};
  facts.disturbed[4] = 1;
  for (int i = 0; i < point.iterations; ++i) {
    stages.at(1, i, 0, Stage::dispatch, Measure::begin_s) += 2e-6;
  }
  TableRows rows = one_group(4);
  rows.order_bound_s = 3.3e-6;  // hides who came last
  input.timings = summarize(stages, rows, facts);
  input.timings->chain = summarize_chain(chains, facts);
  input.timings->chain->weights = "revisited";
  input.timings_file = run.write_timings(point.index, stages);
  input.chains_file = run.write_timings(point.index, chains);
  input.warnings = {"the routing is odd"};
  return make_point_record(input);
}

std::string make_run(const ScratchDir& dir) {
  RunDirectory run = RunDirectory::create(dir / "run", {{"experiment", "sample"}});
  run.append(stored_record(run));
  run.append(make_point_record(skipped_input(sample_point(8, 8), "does not fit")));
  return run.path();
}

void change_record(const std::string& dir, const std::function<void(Json&)>& change) {
  std::vector<Json> records;
  std::istringstream lines(read_text_file(dir + "/points.jsonl"));
  for (std::string line; std::getline(lines, line);) records.push_back(parse_json(line, dir));
  change(records.front());
  std::ofstream file(dir + "/points.jsonl");
  for (const Json& record : records) file << to_json_line(record) << "\n";
}

std::string error_of(const std::string& dir) {
  try {
    replay_run(read_run(dir));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReplayRun, ComputesWhatWasStored) {
  const ScratchDir dir;
  const RunData stored = read_run(make_run(dir));
  ASSERT_FALSE(stored.points[0]["metrics"]["tokens_per_s"].is_null());
  ASSERT_TRUE(stored.points[0]["stages"]["dispatch"]["exchange"]["last_in_rank"].is_null());
  // Only what is made of times and arrays is computed, so it has to be taken away to show.
  RunData emptied = stored;
  for (const char* key : {"layer", "all_stages", "entry_skew_us", "stages", "ffn_p50_us_of_rank"}) {
    if (emptied.points[0][key].contains("pass")) continue;
    emptied.points[0][key] = nullptr;
  }
  for (auto& [name, value] : emptied.points[0]["metrics"].items()) value = nullptr;
  RunData replayed = replay_run(emptied);
  Json& warnings = replayed.points[0]["warnings"];
  ASSERT_EQ(warnings.size(), stored.points[0]["warnings"].size() + 1);
  warnings.erase(warnings.size() - 1);
  EXPECT_EQ(Json::diff(stored.points[0], replayed.points[0]).dump(), "[]");
  EXPECT_EQ(stored.points[1], replayed.points[1]);
  EXPECT_EQ(report_text({replay_run(stored)}), report_text({stored}));
}

TEST(ReplayRun, StoredTimesThatWereEditedAreShownUp) {
  const ScratchDir dir;
  const std::string run = make_run(dir);
  const Json before = read_run(run).points[0];
  change_record(run, [](Json& record) {
    record["stages"]["expert_ffn"]["slowest_us"]["p50"] = 1;
    record["layer"]["p50_us_of_rank"][0] = 1;
  });
  const Json record = replay_run(read_run(run)).points[0];
  EXPECT_EQ(record["stages"], before["stages"]);
  EXPECT_EQ(record["layer"], before["layer"]);
  EXPECT_EQ(record["warnings"].back(),
            "the stored times are not those of timings/0003.npy: computed ones are shown");
}

TEST(ReplayRun, DamagedArraysAreRefusedWithTheirName) {
  const ScratchDir dir;
  const std::string run = make_run(dir);
  const std::string stages = run + "/timings/0003.npy", chains = run + "/timings/0003_chains.npy";
  const std::string whole = read_text_file(stages);
  const auto rewrite = [&](const std::string& text) {
    std::ofstream(stages, std::ios::binary) << text;
    return error_of(run);
  };
  EXPECT_THAT(rewrite(whole.substr(0, whole.size() - 8)),
              AllOf(HasSubstr(stages), HasSubstr("bytes of data")));
  EXPECT_THAT(rewrite(whole.substr(0, 30)), AllOf(HasSubstr(stages), HasSubstr("cut off")));
  EXPECT_THAT(rewrite(""), AllOf(HasSubstr(stages), HasSubstr("header")));
  std::string endless = whole;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::memcpy(endless.data() + endless.size() - 16, &nan, sizeof nan);
  EXPECT_THAT(rewrite(endless), AllOf(HasSubstr(stages), HasSubstr("row 3, iteration 19")));
  EXPECT_EQ(rewrite(whole), "no error");
  // Well-formed, and of another point.
  write_npy(testing::even_times(2, 20, 1e-6), stages);
  EXPECT_THAT(error_of(run), HasSubstr("times of 2 ranks"));
  write_npy(testing::even_times(4, 20, 1e-6, 3), stages);
  EXPECT_THAT(error_of(run), HasSubstr("times of 3 layers"));
  EXPECT_EQ(rewrite(whole), "no error");
  std::filesystem::remove(chains);
  EXPECT_THAT(error_of(run),
              AllOf(HasSubstr("points.jsonl: point 3"), HasSubstr(chains), HasSubstr("missing")));
}

TEST(ReplayRun, RecordsThatPointElsewhereAreRefused) {
  const ScratchDir dir;
  const std::string run = make_run(dir);
  const auto with = [&](const char* key, const Json& value) {
    change_record(run, [&](Json& record) { record[key] = value; });
    return error_of(run);
  };
  EXPECT_THAT(with("timings_file", "../run/timings/0003.npy"),
              HasSubstr("is not a file of the run"));
  EXPECT_THAT(with("timings_file", "/etc/passwd"), HasSubstr("is not a file of the run"));
  EXPECT_THAT(with("timings_file", "timings/9.npy"), HasSubstr("missing"));
  EXPECT_THAT(with("timings_file", "points.jsonl"), HasSubstr("no .npy 1.0 header"));
  EXPECT_EQ(with("timings_file", "timings/0003.npy"), "no error");
  EXPECT_THAT(with("schema_version", "99.0"), HasSubstr("points.jsonl:1: schema_version 99.0"));
  EXPECT_EQ(with("schema_version", std::string(kSchemaVersion)), "no error");
  EXPECT_THAT(with("world_size", "many"), HasSubstr("'world_size' is not a number of ranks"));
  EXPECT_THAT(with("world_size", 2), HasSubstr("ep_size 4 in a world of 2"));
}

TEST(ReplayRun, ArraysThatWereNeverStoredLeaveTheRecordAsItIs) {
  const ScratchDir dir;
  const std::string run = make_run(dir);
  change_record(run, [](Json& record) { record["timings_file"] = nullptr; });
  const RunData stored = read_run(run);
  EXPECT_EQ(replay_run(stored).points, stored.points);
}

TEST(PointTables, StagesAndRanksOfMeasuredPoints) {
  const ScratchDir dir;
  const RunData run = read_run(make_run(dir));
  const std::string text = point_tables({run}, {.stages = true, .ranks = "few"});
  EXPECT_THAT(text,
              AllOf(HasSubstr("EP4, 8 tokens of a group"), HasSubstr("Stages, regime aligned"),
                    HasSubstr("Ranks, regime aligned"), HasSubstr("\n>     2 ")));
  EXPECT_EQ(text.find("EP8"), std::string::npos);
  std::filesystem::remove(run.dir + "/timings/0003.npy");
  EXPECT_NO_THROW(point_tables({run}, {.stages = true, .ranks = ""}));
  EXPECT_THROW(point_tables({run}, {.stages = false, .ranks = "all"}), ConfigError);
}

}  // namespace
}  // namespace epsweep
