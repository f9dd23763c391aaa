#include "report/replay_text.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "report/record_access.h"
#include "report/record_layout.h"
#include "report/stage_table.h"
#include "report/text_table.h"

namespace epsweep {
namespace {

// "- what: text", a line each; nothing for an empty list.
std::string list_text(const char* what, const Json& list) {
  std::string text;
  for (const Json& line : list) text += fmt::format("{}: {}\n", what, plain_text(&line));
  return text;
}

std::string nulls_text(const Json& reasons) {
  std::string text;
  for (const auto& [path, reason] : reasons.items()) {
    text += fmt::format("null: {}: {}\n", path, plain_text(&reason));
  }
  return text;
}

std::string skew_text(const Json& record) {
  const auto ranks = find_number(record, "rows_per_rank.max_over_mean");
  const auto experts = find_number(record, "rows_per_expert.max_over_mean");
  if (!ranks && !experts) return "";
  return fmt::format("rows, max/mean: of ranks {}, of experts {}\n", short_number(ranks),
                     short_number(experts));
}

std::string point_text(const ReplayFile& file, const Json& record) {
  const std::string warmup = plain_text(find_value(record, "point.warmup"));
  std::string text =
      fmt::format("## {}: {} iterations after {} of warm-up\n", point_heading(record),
                  plain_text(find_value(record, "point.iterations")),
                  warmup.empty() ? "an unknown number" : warmup);
  if (const auto rows = find_number(record, "point.ranks_per_row"); rows.value_or(1) > 1) {
    text += fmt::format("a row is the slowest of {:.0f} ranks\n", *rows);
  }
  if (find_text(record, "state") == "failed") {
    text += fmt::format("FAILED: {}\n", find_text(record, "reason"));
  }
  return text + stage_table(record, file.path) + skew_text(record) +
         list_text("warning", record.at("warnings")) + nulls_text(record.at("null_reasons")) +
         list_text("note", record.at("notes"));
}

}  // namespace

std::string replay_text(const ReplayFile& file, const std::vector<Json>& records) {
  const auto num_failed = std::ranges::count_if(
      records, [](const Json& record) { return find_text(record, "state") == "failed"; });
  std::string text =
      fmt::format("# {}\n{}\n{} points: {} measured, {} failed\n", file.path, file.tool,
                  records.size(), std::ssize(records) - num_failed, num_failed);
  for (const std::string& note : file.notes) text += fmt::format("note: {}\n", note);
  for (const Json& record : records) text += "\n" + point_text(file, record);
  return text;
}

}  // namespace epsweep
