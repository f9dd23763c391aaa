#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "app/commands.h"
#include "base/error.h"
#include "report/counterfactuals.h"
#include "report/csv.h"
#include "report/frontier_records.h"
#include "report/point_tables.h"
#include "report/tables.h"
#include "report/why.h"

namespace epsweep {

int run(const ReportCommand& command) {
  std::vector<RunData> runs;
  std::vector<Json> records;
  std::set<std::string> seen;
  for (const std::string& dir : command.dirs) {
    if (!seen.insert(std::filesystem::weakly_canonical(dir).string()).second) {
      throw ConfigError(dir + ": this directory is named twice");
    }
    runs.push_back(read_run(dir));
    for (Json record : runs.back().points) {
      if (command.dirs.size() > 1) record["run"] = dir;
      records.push_back(std::move(record));
    }
  }
  if (command.csv) {
    fmt::print("{}", points_csv(records));
  } else if (command.json) {
    const std::vector<EpPair> pairs = ep_pairs(records);
    fmt::print("{}\n", report_json(records, {{"frontier", frontiers_json(runs)},
                                             {"why", why_json(pairs)},
                                             {"crossovers", crossings_json(pairs)},
                                             {"counterfactuals", counterfactuals_json(records)}}));
  } else if (command.stages || !command.ranks.empty()) {
    fmt::print("{}\n", point_tables(runs, {.stages = command.stages, .ranks = command.ranks}));
  } else {
    fmt::print("{}\n", report_text(runs));
  }
  return static_cast<int>(ExitCode::ok);
}

}  // namespace epsweep
