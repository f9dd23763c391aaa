#include "report/ladder_lines.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "report/record_access.h"
#include "report/series_end.h"

namespace epsweep {
namespace {

struct Series {
  std::string label;
  std::vector<TableRow> rows;
};

std::string label_of(const TableRow& row, const std::vector<Axis>& varying) {
  const Json& record = *row.record;
  std::string label =
      fmt::format("EP{} {} {}", plain_text(find_value(record, "point.ep_size")),
                  find_text(record, "point.transport"), find_text(record, "point.grouped_gemm"));
  for (const Axis& axis : varying) {
    if (axis.name == "transport" || axis.name == "grouped_gemm" || axis.name == "attempt") continue;
    label += fmt::format(" {} {}", axis.name, axis.text(row));
  }
  return label;
}

std::string line_of(const Series& series) {
  const SeriesEnd end = series_end(series.rows);
  std::string text = "no load can run";
  if (end.last_run) {
    text = fmt::format("reached the end of the ladder at {} tokens", *end.last_run);
  }
  if (!end.cut_short.empty()) text = "not finished: " + end.cut_short;
  if (end.refused) {
    text = fmt::format("stopped at {} tokens by {}: {}", *end.refused, end.stopped_by, end.reason);
  }
  if (find_value(*series.rows.front().record, "point.limits") != nullptr) {
    text += end.admitted ? fmt::format("; {} tokens admitted", *end.admitted) : "; none admitted";
  }
  return fmt::format("  {}: {}\n", series.label, text);
}

bool has_limits(const TableRow& row) {
  return find_value(*row.record, "ladder_stop") != nullptr ||
         find_value(*row.record, "point.serving") != nullptr ||
         find_value(*row.record, "point.limits") != nullptr ||
         find_value(*row.record, "point.latency_objective_us") != nullptr;
}

}  // namespace

std::string ladder_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying) {
  if (std::ranges::none_of(rows, has_limits)) return "";
  std::vector<Series> all;
  std::map<std::string, std::size_t> position;
  for (const TableRow& row : rows) {
    const auto [found, is_new] = position.emplace(series_key_of(row), all.size());
    if (is_new) all.emplace_back().label = label_of(row, varying);
    all[found->second].rows.push_back(row);
  }
  std::string text = "\nLadders\n";
  for (const Series& series : all) text += line_of(series);
  return text;
}

}  // namespace epsweep
