#include "report/point_tables.h"

#include <fmt/format.h>

#include "report/point_record.h"
#include "report/rank_table.h"
#include "report/record_access.h"
#include "report/record_layout.h"
#include "report/run_times.h"
#include "report/stage_table.h"
#include "report/table_columns.h"

namespace epsweep {
namespace {

std::string state_text(const Json& record) {
  if (has_measured_compute(record)) return ", " + find_text(record, "prediction.label");
  if (is_predicted(record)) return ", predicted";
  return is_simulated(record) ? ", simulated" : "";
}

std::string point_text(const RunData& run, const Json& record, const PointTables& tables) {
  const std::string place = record_place(run.dir, record);
  std::string text =
      fmt::format("## {} {}{}\n", row_mark(record), point_heading(record), state_text(record));
  if (tables.stages) text += stage_table(record, place);
  if (tables.ranks.empty()) return text;
  const auto times = stage_times_of(run.dir, record);
  if (!times) return text + "no array of times was stored\n";
  const RankRows rows = tables.ranks == "all" ? RankRows::all : RankRows::few;
  return text + rank_table(record, *times, rows, place);
}

}  // namespace

std::string point_tables(const std::vector<RunData>& runs, const PointTables& tables) {
  std::string text;
  for (const RunData& run : runs) {
    text += fmt::format("{}# {}\n", text.empty() ? "" : "\n", run.dir);
    for (const Json& record : run.points) {
      if (!has_row(record)) continue;
      text += "\n" + point_text(run, record, tables);
    }
  }
  return text;
}

}  // namespace epsweep
