#include "report/run_times.h"

#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "report/point_record.h"
#include "report/record_access.h"
#include "report/record_layout.h"

namespace epsweep {
namespace {

namespace fs = std::filesystem;

// Empty where the record names no file.
std::string path_of(const std::string& dir, const Json& record, const char* key) {
  const std::string name = find_text(record, key);
  if (name.empty()) return "";
  for (const fs::path& part : fs::path(name)) {
    if (part != ".." && !part.has_root_path()) continue;
    throw ConfigError(
        fmt::format("{}: {} '{}' is not a file of the run", record_place(dir, record), key, name));
  }
  const std::string path = fmt::format("{}/{}", dir, name);
  if (!fs::exists(path)) {
    throw ConfigError(
        fmt::format("{}: names {}, which is missing", record_place(dir, record), path));
  }
  return path;
}

// What is wrong with a file of the user's is the user's mistake.
template <typename Read>
auto read_or_refuse(const std::string& path, const Read& read) {
  try {
    return read(path);
  } catch (const RunError& error) {
    throw ConfigError(error.what());
  }
}

void expect_forward(const std::string& path, double begin_s, double end_s, int rank,
                    int iteration) {
  if (std::isfinite(begin_s) && std::isfinite(end_s) && end_s >= begin_s) return;
  throw ConfigError(fmt::format("{}: row {}, iteration {} (from 0): a time from {} s to {} s", path,
                                rank, iteration, begin_s, end_s));
}

void expect_ranks(const std::string& path, const std::string& dir, const Json& record, int ranks) {
  const std::string place = record_place(dir, record);
  const std::size_t expected = active_ranks(layout_of_record(record, place)).size();
  if (expected == static_cast<std::size_t>(ranks)) return;
  throw ConfigError(
      fmt::format("{}: times of {} ranks, {} is of {}", path, ranks, place, expected));
}

}  // namespace

std::string record_place(const std::string& dir, const Json& record) {
  return fmt::format("{}/points.jsonl: point {}", dir, plain_text(find_value(record, "index")));
}

std::optional<TimingTable> stage_times_of(const std::string& dir, const Json& record) {
  const std::string path = path_of(dir, record, "timings_file");
  if (path.empty()) return std::nullopt;
  TimingTable table = read_or_refuse(path, read_npy);
  expect_ranks(path, dir, record, table.num_ranks());
  if (find_number(record, "point.layers").value_or(0) != table.num_layers()) {
    throw ConfigError(fmt::format("{}: times of {} layers, {} has {}", path, table.num_layers(),
                                  record_place(dir, record),
                                  plain_text(find_value(record, "point.layers"))));
  }
  for (int r = 0; r < table.num_ranks(); ++r) {
    for (int i = 0; i < table.num_iterations(); ++i) {
      for (int l = 0; l < table.num_layers(); ++l) {
        for (int s = 0; s < kNumStages; ++s) {
          const auto stage = static_cast<Stage>(s);
          expect_forward(path, table.at(r, i, l, stage, Measure::begin_s),
                         table.at(r, i, l, stage, Measure::end_s), r, i);
          expect_forward(path, 0, table.at(r, i, l, stage, Measure::cpu_s), r, i);
        }
      }
    }
  }
  return table;
}

std::optional<ChainTable> chain_times_of(const std::string& dir, const Json& record) {
  const std::string path = path_of(dir, record, "chains_file");
  if (path.empty()) return std::nullopt;
  ChainTable table = read_or_refuse(path, read_chain_npy);
  expect_ranks(path, dir, record, table.num_ranks());
  for (int r = 0; r < table.num_ranks(); ++r) {
    for (int c = 0; c < table.num_chains(); ++c) {
      for (int p = 0; p < table.chain_layers(); ++p) {
        expect_forward(path, table.begin_s(r, c, p), table.end_s(r, c, p), r, c);
      }
    }
  }
  return table;
}

}  // namespace epsweep
