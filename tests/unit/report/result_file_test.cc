#include "report/result_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "report/point_record.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using testing::even_times;
using testing::measured_input;
using testing::sample_point;
using testing::ScratchDir;
using testing::skipped_input;

Json sample_record(int index) {
  SweepPoint point = sample_point(4, 8);
  point.index = index;
  point.seed = static_cast<std::uint64_t>(index) + 1;
  return make_point_record(measured_input(point));
}

const Json kRun = {{"experiment", "sample"}, {"host", "n1,n2"}};

template <typename Error, typename Action>
void expect_error(const Action& action, const std::string& part) {
  try {
    action();
    ADD_FAILURE() << "no error; expected one with " << part;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A finished run of two points in DIR/run.
std::string make_run(const ScratchDir& dir) {
  RunDirectory run = RunDirectory::create(dir / "run", kRun);
  run.append(sample_record(0));
  run.append(sample_record(1));
  return dir / "run";
}

TEST(ResultFile, WhatIsWrittenIsRead) {
  const ScratchDir dir;
  RunDirectory run = RunDirectory::create(dir / "run/", kRun);
  EXPECT_EQ(read_run(dir / "run").points.size(), 0u);  // readable before the first point
  run.append(sample_record(0));
  run.append(sample_record(1));
  EXPECT_EQ(run.write_timings(1, even_times(2, 3, 1.0)), "timings/0001.npy");
  Json ended = kRun;
  ended["ended"] = true;
  run.finish(ended);

  const RunData data = read_run(dir / "run");
  EXPECT_EQ(data.run["experiment"], "sample");
  EXPECT_EQ(data.run["ended"], true);
  EXPECT_EQ(data.run.begin().key(), "schema_version");
  EXPECT_TRUE(data.run["formulas"]["metrics"].contains("layer_p50_us"));
  ASSERT_EQ(data.points.size(), 2u);
  EXPECT_EQ(data.points[1], sample_record(1));
  EXPECT_EQ(read_npy(dir / "run/timings/0001.npy").num_iterations(), 3);
  EXPECT_EQ(read_text_file(dir / "run/points.csv").substr(0, 9), "index,id,");
  EXPECT_FALSE(std::filesystem::exists(dir / "run/run.json.tmp"));
}

TEST(ResultFile, OnlyOneWriter) {
  const ScratchDir dir;
  const RunDirectory first = RunDirectory::create(dir / "run", kRun);
  const std::string run_json = read_text_file(dir / "run/run.json");
  expect_error<ConfigError>(
      [&] {
        RunDirectory::create(dir / "run", {{"other", 1}});
      },
      "already holds a run");
  // The second of two writers that both passed the look at run.json.
  std::filesystem::remove(dir / "run/run.json");
  expect_error<ConfigError>([&] { RunDirectory::create(dir / "run", kRun); }, "points.jsonl");
  EXPECT_FALSE(std::filesystem::exists(dir / "run/run.json"));
}

TEST(ResultFile, AnEmptyDirectoryWillDo) {
  const ScratchDir dir;
  std::filesystem::create_directory(dir / "run");
  EXPECT_NO_THROW(RunDirectory::create(dir / "run", kRun));
}

TEST(ResultFile, UnusableDirectoriesFailFirst) {
  const ScratchDir dir;
  expect_error<ConfigError>([&] { RunDirectory::create(dir / "a/b", kRun); }, "does not exist");
  EXPECT_FALSE(std::filesystem::exists(dir / "a"));
  write_text(dir / "file", "text");
  expect_error<ConfigError>([&] { RunDirectory::create(dir / "file", kRun); }, "is a file");
  expect_error<ConfigError>([&] { RunDirectory::create(dir / "file/run", kRun); },
                            "Not a directory");
  expect_error<ConfigError>([&] { RunDirectory::create("", kRun); }, "empty");
}

TEST(ResultFile, WhatCouldNotBeStartedIsNoRunAfterwards) {
  const ScratchDir dir;
  std::filesystem::create_directory(dir / "run");
  std::ofstream(dir / "run/timings") << "in the way";
  EXPECT_THROW(RunDirectory::create(dir / "run", kRun), ConfigError);
  std::filesystem::remove(dir / "run/timings");
  EXPECT_NO_THROW(RunDirectory::create(dir / "run", kRun));
  EXPECT_THROW(RunDirectory::create(dir / "run/run.json", kRun), ConfigError);
}

TEST(ResultFile, UnwritableDirectoriesFailFirst) {
  if (::geteuid() == 0) GTEST_SKIP() << "root writes everywhere";
  const ScratchDir dir;
  std::filesystem::create_directory(dir / "locked");
  std::filesystem::permissions(
      dir / "locked", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  expect_error<ConfigError>([&] { RunDirectory::create(dir / "locked", kRun); },
                            "Permission denied");
  expect_error<ConfigError>([&] { RunDirectory::create(dir / "locked/run", kRun); },
                            "Permission denied");
}

TEST(ResultFile, AFullDiskIsNamed) {
  const FileHandle full(::open("/dev/full", O_WRONLY));
  if (!full) GTEST_SKIP() << "no /dev/full here";
  expect_error<RunError>([&] { write_all(full, "text", "points.jsonl"); },
                         "points.jsonl: cannot be written: No space left");
}

// A size limit cuts the second record in the middle: a short write, then an error.
TEST(ResultFile, AHalfWrittenRecordIsTakenBack) {
  const ScratchDir dir;
  RunDirectory run = RunDirectory::create(dir / "run", kRun);
  run.append(sample_record(0));
  const auto line_bytes = std::filesystem::file_size(dir / "run/points.jsonl");
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limited = before;
  limited.rlim_cur = line_bytes + line_bytes / 2;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  expect_error<RunError>([&] { run.append(sample_record(1)); }, "points.jsonl");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(std::filesystem::file_size(dir / "run/points.jsonl"), line_bytes);
  run.append(sample_record(2));
  const RunData data = read_run(dir / "run");
  ASSERT_EQ(data.points.size(), 2u);
  EXPECT_EQ(data.points[1]["index"], 2);
}

TEST(ResultFile, ATornTailIsForgiven) {
  const ScratchDir dir;
  const std::string run = make_run(dir);
  const std::string text = read_text_file(run + "/points.jsonl");
  write_text(run + "/points.jsonl", text.substr(0, text.size() - 10));
  EXPECT_EQ(read_run(run).points.size(), 1u);
  write_text(run + "/points.jsonl", text.substr(0, text.size() - 1));  // all but the newline
  EXPECT_EQ(read_run(run).points.size(), 2u);
}

TEST(ResultFile, AnythingElseIsRefusedByLine) {
  const ScratchDir dir;
  const std::string run = make_run(dir);
  const std::string text = read_text_file(run + "/points.jsonl");
  const std::size_t second = text.find('\n') + 1;
  const auto expect_refused = [&run](const std::string& lines, const std::string& part) {
    write_text(run + "/points.jsonl", lines);
    expect_error<ConfigError>([&run] { read_run(run); }, part);
  };
  // Torn in the middle, though whole lines follow.
  expect_refused(text.substr(0, second - 10) + "\n" + text.substr(second), "points.jsonl:1");
  expect_refused(text + "\n", "points.jsonl:3");
  expect_refused(text.substr(0, text.size() - 10) + "\n", "points.jsonl:2");
  expect_refused("[1]\n", "points.jsonl:1: not a JSON object");
  expect_refused("{\"schema_version\": \"2.0\", \"state\": \"fine\"}\n", "unknown state 'fine'");
  expect_refused("{\"schema_version\": \"2.0\", \"state\": \"empty\"}\n", "has no 'id'");
  expect_refused("{\"state\": \"empty\"}\n", "has no schema_version");
}

TEST(ResultFile, AnotherMajorIsRefusedByName) {
  const ScratchDir dir;
  const std::string run = make_run(dir);
  Json record = sample_record(0);
  record["schema_version"] = "2.7";
  write_text(run + "/points.jsonl", to_json_line(record) + "\n");
  EXPECT_EQ(read_run(run).points.size(), 1u);
  record["schema_version"] = "3.0";
  write_text(run + "/points.jsonl", to_json_line(record) + "\n");
  expect_error<ConfigError>([&run] { read_run(run); }, "points.jsonl:1: schema_version 3.0");
}

TEST(ResultFile, ADirectoryWithoutARunIsNamed) {
  const ScratchDir dir;
  expect_error<ConfigError>([&dir] { read_run(dir / "none"); }, "run.json");
}

}  // namespace
}  // namespace epsweep
