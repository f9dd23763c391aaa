#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "app/commands.h"
#include "base/error.h"
#include "base/text.h"
#include "report/counterfactuals.h"
#include "report/frontier_records.h"
#include "report/record_access.h"
#include "report/replay_file.h"
#include "report/replay_record.h"
#include "report/replay_run.h"
#include "report/replay_series.h"
#include "report/replay_text.h"
#include "report/tables.h"
#include "report/why.h"

namespace epsweep {
namespace {

struct Replayed {
  std::vector<RunData> runs;
  std::vector<ReplayFile> files;
  std::vector<std::vector<Json>> records_of_file;
};

Replayed read_all(const std::vector<std::string>& paths) {
  Replayed replayed;
  for (const std::string& path : paths) {
    if (std::filesystem::is_directory(path)) {
      replayed.runs.push_back(replay_run(read_run(path)));
    } else {
      replayed.files.push_back(parse_replay(read_text_file(path), path));
    }
  }
  expect_comparable(replayed.files);
  for (const ReplayFile& file : replayed.files) {
    std::vector<Json>& records = replayed.records_of_file.emplace_back();
    for (const ReplayPoint& point : file.points) records.push_back(make_replay_record(file, point));
  }
  return replayed;
}

std::vector<Json> all_records(const Replayed& replayed) {
  std::vector<Json> all;
  for (const RunData& run : replayed.runs) {
    for (Json record : run.points) {
      if (replayed.runs.size() > 1) record["run"] = run.dir;
      all.push_back(std::move(record));
    }
  }
  for (const std::vector<Json>& records : replayed.records_of_file) {
    all.insert(all.end(), records.begin(), records.end());
  }
  return all;
}

std::string text_of(const Replayed& replayed) {
  std::string text = report_text(replayed.runs);
  std::vector<Json> records;
  for (std::size_t i = 0; i < replayed.files.size(); ++i) {
    if (!text.empty()) text += "\n";
    text += replay_text(replayed.files[i], replayed.records_of_file[i]);
    records.insert(records.end(), replayed.records_of_file[i].begin(),
                   replayed.records_of_file[i].end());
  }
  const std::vector<std::string> verdicts = replay_verdicts(records);
  if (verdicts.empty()) return text;
  text +=
      "\nRepeats (p50 of the layer, else of all stages; intervals that overlap show no "
      "difference)\n";
  for (const std::string& verdict : verdicts) text += fmt::format("  {}\n", verdict);
  return text;
}

}  // namespace

int run(const ReplayCommand& command) {
  const Replayed replayed = read_all(command.paths);
  const std::vector<Json> records = all_records(replayed);
  if (command.json) {
    const std::vector<EpPair> pairs = ep_pairs(records);
    fmt::print("{}\n", report_json(records, {{"frontier", frontiers_json(replayed.runs)},
                                             {"why", why_json(pairs)},
                                             {"crossovers", crossings_json(pairs)},
                                             {"counterfactuals", counterfactuals_json(records)}}));
  } else {
    fmt::print("{}\n", text_of(replayed));
  }
  const bool failed = std::ranges::any_of(replayed.records_of_file, [](const auto& of_file) {
    return std::ranges::any_of(
        of_file, [](const Json& record) { return find_text(record, "state") == "failed"; });
  });
  return static_cast<int>(failed ? ExitCode::verification : ExitCode::ok);
}

}  // namespace epsweep
