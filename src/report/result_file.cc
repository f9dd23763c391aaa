#include "report/result_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "report/csv.h"
#include "report/point_record.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunFile = "run.json";
constexpr const char* kPointsFile = "points.jsonl";
constexpr const char* kCsvFile = "points.csv";
constexpr const char* kTimingsDir = "timings";

std::string in_dir(const std::string& dir, std::string_view name) {
  return fmt::format("{}/{}", dir, name);
}

[[noreturn]] void refuse_dir(const std::string& path, const std::string& reason) {
  throw ConfigError(fmt::format("result directory {}: {}", path, reason));
}

void make_dir(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || (errno == EEXIST && fs::is_directory(path))) return;
  const int error = errno;
  if (error == EEXIST) refuse_dir(path, "is a file");
  const fs::path parent = fs::path(path).parent_path();
  if (error == ENOENT && !parent.empty() && !fs::exists(parent)) {
    refuse_dir(path, fmt::format("its parent {} does not exist", parent.string()));
  }
  refuse_dir(path, fmt::format("cannot be created: {}", std::strerror(error)));
}

Json run_json(const Json& run) {
  Json json = {{"schema_version", kSchemaVersion}};
  json.update(run);
  json["formulas"] = record_formulas();
  return json;
}

void write_run_json(const std::string& dir, const Json& run) {
  const std::string text = run_json(run).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  write_file_atomically(in_dir(dir, kRunFile), text);
}

void expect_schema(const Json& json, const std::string& where) {
  if (!json.is_object()) throw ConfigError(where + ": not a JSON object");
  const auto major = [](std::string_view version) { return version.substr(0, version.find('.')); };
  const std::string version = find_text(json, "schema_version");
  if (version.empty()) throw ConfigError(where + ": has no schema_version");
  if (major(version) != major(kSchemaVersion)) {
    throw ConfigError(fmt::format("{}: schema_version {} is not readable, this build reads {}.x",
                                  where, version, major(kSchemaVersion)));
  }
}

Json parse_record(std::string_view line, const std::string& where) {
  Json record = parse_json(line, where);
  expect_schema(record, where);
  const std::string state = find_text(record, "state");
  const auto& states = kPointStateNames;
  if (std::find(states.begin(), states.end(), state) == states.end()) {
    throw ConfigError(fmt::format("{}: unknown state '{}'", where, state));
  }
  for (const char* key : {"id", "index", "point"}) {
    if (find_value(record, key) == nullptr) {
      throw ConfigError(fmt::format("{}: has no '{}'", where, key));
    }
  }
  return record;
}

}  // namespace

RunDirectory RunDirectory::create(const std::string& path, const Json& run) {
  std::string dir = path;
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  if (dir.empty()) throw ConfigError("result directory: the name is empty");
  make_dir(dir);
  if (fs::exists(in_dir(dir, kRunFile))) refuse_dir(dir, "already holds a run (run.json)");
  const std::string points_path = in_dir(dir, kPointsFile);
  // O_EXCL decides between two writers that got this far together.
  FileHandle points(
      ::open(points_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!points && errno == EEXIST) refuse_dir(dir, "already holds a run (points.jsonl)");
  if (!points) refuse_dir(dir, fmt::format("cannot be written: {}", std::strerror(errno)));
  try {
    make_dir(in_dir(dir, kTimingsDir));
    write_run_json(dir, run);
  } catch (const Error&) {
    // A second try, with room on the disk, must not take this for a run.
    ::unlink(points_path.c_str());
    ::rmdir(in_dir(dir, kTimingsDir).c_str());  // if it is empty
    throw;
  }
  return RunDirectory(std::move(dir), std::move(points));
}

void RunDirectory::append(const Json& record) {
  const std::string line = to_json_line(record) + "\n";
  const std::string points_path = in_dir(path_, kPointsFile);
  try {
    write_all(points_, line, points_path);
    sync_file(points_, points_path);
  } catch (const RunError& error) {
    if (::ftruncate(points_.get(), num_bytes_) == 0) throw;
    throw RunError(fmt::format("{}; its torn last line could not be removed", error.what()));
  }
  num_bytes_ += static_cast<std::int64_t>(line.size());
}

std::string RunDirectory::write_timings(int index, const TimingTable& table) {
  std::string name = fmt::format("{}/{:04d}.npy", kTimingsDir, index);
  write_npy(table, in_dir(path_, name));
  return name;
}

std::string RunDirectory::write_timings(int index, const ChainTable& table) {
  std::string name = fmt::format("{}/{:04d}_chains.npy", kTimingsDir, index);
  write_npy(table, in_dir(path_, name));
  return name;
}

void RunDirectory::finish(const Json& run) {
  write_run_json(path_, run);
  write_file_atomically(in_dir(path_, kCsvFile), points_csv(read_run(path_).points));
}

RunData read_run(const std::string& dir) {
  RunData data;
  data.dir = dir;
  const std::string run_path = in_dir(dir, kRunFile);
  data.run = parse_json(read_text_file(run_path), run_path);
  expect_schema(data.run, run_path);

  const std::string points_path = in_dir(dir, kPointsFile);
  const std::string text = read_text_file(points_path);
  std::string_view rest(text);
  for (int line_number = 1; !rest.empty(); ++line_number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    // A prefix of an object is never valid JSON: without its newline a line is whole or torn.
    if (end == std::string_view::npos && !Json::accept(line)) break;
    data.points.push_back(parse_record(line, fmt::format("{}:{}", points_path, line_number)));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return data;
}

}  // namespace epsweep
