#include <fmt/format.h>

#include "app/commands.h"
#include "base/error.h"
#include "report/csv.h"
#include "report/tables.h"

namespace epsweep {

int run(const ReportCommand& command) {
  std::vector<RunData> runs;
  std::vector<Json> records;
  for (const std::string& dir : command.dirs) {
    runs.push_back(read_run(dir));
    records.insert(records.end(), runs.back().points.begin(), runs.back().points.end());
  }
  if (command.csv) {
    fmt::print("{}", points_csv(records));
  } else if (command.json) {
    fmt::print("{}\n", records_json(records));
  } else {
    fmt::print("{}\n", report_text(runs));
  }
  return static_cast<int>(ExitCode::ok);
}

}  // namespace epsweep
