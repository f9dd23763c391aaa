#include "report/ladder_lines.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "report/record_access.h"

namespace epsweep {
namespace {

struct Series {
  std::string label;
  std::string stop;       // "at 2048 tokens by kv_memory: why"; empty for none
  std::string cut_short;  // state of a point that ended before its turn, without a limit
  std::optional<std::int64_t> last_tokens;  // highest load that ran
};

// Every axis but the load; rows of different run directories are different series.
std::string key_of(const TableRow& row) {
  Json axes = row.record->at("point");
  axes.erase("index");
  if (find_text(*row.record, "point.concurrency") != "listed") {
    axes.erase("tokens");
    axes.erase("tokens_global");
  }
  return row.dir + to_json_line(axes);
}

std::string label_of(const TableRow& row, const std::vector<Axis>& varying) {
  const Json& record = *row.record;
  std::string label =
      fmt::format("EP{} {} {}", plain_text(find_value(record, "point.ep_size")),
                  find_text(record, "point.transport"), find_text(record, "point.grouped_gemm"));
  for (const Axis& axis : varying) {
    if (axis.name == "transport" || axis.name == "grouped_gemm") continue;
    label += fmt::format(" {} {}", axis.name, axis.text(row));
  }
  return label;
}

void add_row(const TableRow& row, Series& series) {
  const Json& record = *row.record;
  const auto tokens =
      static_cast<std::int64_t>(find_number(record, "point.tokens_global").value_or(0));
  const std::string state = find_text(record, "state");
  if (state != "skipped" && state != "stopped") {
    series.last_tokens = std::max(series.last_tokens.value_or(0), tokens);
  }
  if (find_value(record, "ladder_stop") != nullptr) {
    series.stop = fmt::format(
        "stopped at {} tokens by {}: {}", plain_text(find_value(record, "ladder_stop.at_tokens")),
        find_text(record, "ladder_stop.kind"), find_text(record, "ladder_stop.reason"));
  } else if (state == "stopped") {
    series.cut_short = fmt::format("not finished: {}", find_text(record, "reason"));
  }
}

std::string line_of(const Series& series) {
  std::string end = "no load can run";
  if (series.last_tokens) {
    end = fmt::format("reached the end of the ladder at {} tokens", *series.last_tokens);
  }
  if (!series.cut_short.empty()) end = series.cut_short;
  if (!series.stop.empty()) end = series.stop;
  return fmt::format("  {}: {}\n", series.label, end);
}

bool has_limits(const TableRow& row) {
  return find_value(*row.record, "ladder_stop") != nullptr ||
         find_value(*row.record, "point.serving") != nullptr ||
         find_value(*row.record, "point.latency_objective_us") != nullptr;
}

}  // namespace

std::string ladder_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying) {
  if (std::ranges::none_of(rows, has_limits)) return "";
  std::vector<Series> all;
  std::map<std::string, std::size_t> position;
  for (const TableRow& row : rows) {
    const auto [found, is_new] = position.emplace(key_of(row), all.size());
    if (is_new) all.emplace_back().label = label_of(row, varying);
    add_row(row, all[found->second]);
  }
  std::string text = "\nLadders\n";
  for (const Series& series : all) text += line_of(series);
  return text;
}

}  // namespace epsweep
