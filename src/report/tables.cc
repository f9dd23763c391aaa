#include "report/tables.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/text.h"
#include "report/baseline_lines.h"
#include "report/ceiling_lines.h"
#include "report/choice_lines.h"
#include "report/counterfactuals.h"
#include "report/frontier_records.h"
#include "report/ladder_lines.h"
#include "report/prediction_lines.h"
#include "report/record_access.h"
#include "report/table_columns.h"
#include "report/verdict_lines.h"
#include "report/why.h"

namespace epsweep {
namespace {

// Points that may stand in one table.
struct Group {
  std::string key;
  std::vector<TableRow> rows;
};

// Runs of one identity, as one set of rows.
struct Section {
  std::string identity;
  std::vector<std::string> dirs;
  std::vector<TableRow> rows;
  int num_planned = 0;     // points of all its runs
  int num_unfinished = 0;  // runs that did not get to their end
  std::string ceilings;    // of all its runs
};

// The whole shape takes part: a changed model under an old name is another model.
std::string group_key(const Json& record) {
  return find_text(record, "point.concurrency") + "\n" +
         plain_text(find_value(record, "point.model"));
}

std::vector<Group> make_groups(const std::vector<TableRow>& rows) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> position;
  for (const TableRow& row : rows) {
    const std::string key = group_key(*row.record);
    const auto [found, is_new] = position.emplace(key, groups.size());
    if (is_new) groups.push_back({key, {}});
    groups[found->second].rows.push_back(row);
  }
  return groups;
}

struct VaryingAxes {
  std::vector<Axis> varying;
  std::string fixed_text;  // "placement contiguous, dtype bf16, ...", in lines
};

constexpr std::size_t kHeadingColumns = 120;

std::string comma_lines(const std::vector<std::string>& parts) {
  std::string text;
  std::size_t line_begin = 0;
  for (const std::string& part : parts) {
    if (!text.empty()) {
      const bool full = text.size() - line_begin + part.size() + 3 > kHeadingColumns;
      text += full ? ",\n" : ", ";
      if (full) line_begin = text.size();
    }
    text += part;
  }
  return text;
}

VaryingAxes split_axes(const std::vector<TableRow>& rows) {
  VaryingAxes axes;
  std::vector<std::string> fixed;
  for (const Axis& axis : table_axes()) {
    const std::string first = axis.text(rows.front());
    const bool same = std::all_of(rows.begin(), rows.end(),
                                  [&](const TableRow& row) { return axis.text(row) == first; });
    if (!same) axes.varying.push_back(axis);
    if (same && axis.name != "run" && axis.name != "attempt")
      fixed.push_back(axis.name + " " + first);
  }
  axes.fixed_text = comma_lines(fixed);
  return axes;
}

// Load first, EP size last but one: neighbours are what one compares, EP sizes at one load.
void sort_rows(const std::vector<Axis>& varying, std::vector<TableRow>& rows) {
  struct Keyed {
    double tokens = 0;
    std::vector<std::string> variant;
    double ep_size = 0, index = 0;
    TableRow row;
  };
  const auto value = [](const TableRow& row, const char* path) {
    return find_number(*row.record, path).value_or(0);
  };
  std::vector<Keyed> keyed;
  for (const TableRow& row : rows) {
    // `tokens` is the held count of either mode; a list counts by its sum.
    const bool listed = find_text(*row.record, "point.concurrency") == "listed";
    Keyed key = {value(row, listed ? "point.tokens_global" : "point.tokens"),
                 {},
                 value(row, "point.ep_size"),
                 value(row, "index"),
                 row};
    for (const Axis& axis : varying) {
      if (!is_repeat_axis(axis)) key.variant.push_back(axis.text(row));
    }
    keyed.push_back(std::move(key));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
    return std::tie(a.tokens, a.variant, a.ep_size, a.index) <
           std::tie(b.tokens, b.variant, b.ep_size, b.index);
  });
  std::transform(keyed.begin(), keyed.end(), rows.begin(),
                 [](const Keyed& key) { return key.row; });
}

std::string heading(const TableRow& row, const VaryingAxes& axes) {
  const std::string mode = find_text(*row.record, "point.concurrency");
  const char* meaning = mode == "fixed_global"     ? "tokens of a group held while EP size varies"
                        : mode == "fixed_per_rank" ? "tokens of a rank held while EP size varies"
                                                   : "tokens of every rank listed by hand";
  const auto of_model = [&row](const std::string& key) {
    return plain_text(find_value(*row.record, "point.model." + key));
  };
  return fmt::format("## {}, {}: {}\n{} experts, top_k {}, expert_io_dim {}, ffn_dim {}\n{}\n",
                     of_model("name"), mode, meaning, of_model("num_experts"), of_model("top_k"),
                     of_model("expert_io_dim"), of_model("ffn_dim"), axes.fixed_text);
}

std::string mark_lines(const std::vector<TableRow>& rows) {
  std::set<std::string> crowded;
  double worst_load = 0, most_sharing = 0;
  for (const TableRow& row : rows) {
    const Json& record = *row.record;
    const std::string mark = row_mark(record);
    if (mark.find('!') != std::string::npos) {
      crowded.insert(fmt::format("{} on {}", plain_text(find_value(record, "load.ranks")),
                                 plain_text(find_value(record, "load.cores"))));
    }
    if (mark.find('#') != std::string::npos) {
      most_sharing =
          std::max(most_sharing, find_number(record, "load.ranks_per_device").value_or(0));
    }
    if (mark.find('~') != std::string::npos) {
      worst_load = std::max(worst_load, find_number(record, "load.foreign_load").value_or(0));
    }
  }
  std::string text;
  if (std::ranges::any_of(rows, [](const TableRow& row) { return is_simulated(*row.record); })) {
    text += "S simulated: a virtual clock and declared costs; nothing was measured or checked\n";
  }
  text += predicted_mark_text(rows);
  if (std::ranges::any_of(rows, [](const TableRow& row) { return copies_locally(*row.record); })) {
    text +=
        "L a local copy of the same rows instead of the exchange: what would be, no way to run\n";
  }
  if (!crowded.empty()) {
    text += fmt::format("! more ranks than cores ({}): timings not fit for comparison\n",
                        join(std::vector<std::string>(crowded.begin(), crowded.end())));
  }
  if (most_sharing > 0) {
    text += fmt::format("# up to {:.0f} ranks share a device: shows that it works, not how fast\n",
                        most_sharing);
  }
  if (worst_load > 0) {
    text += fmt::format("~ other programs took more than {:.0f} % of the host (worst {:.1f} %)\n",
                        kForeignLoadLimit * 100, worst_load * 100);
  }
  return text;
}

std::string table_text(const TableLayout& layout, const std::vector<Axis>& varying,
                       const std::vector<TableRow>& rows) {
  std::vector<TableColumn> columns = key_columns();
  for (const Axis& axis : varying) columns.push_back({{axis.name, Align::left}, axis.text});
  columns.insert(columns.end(), layout.columns.begin(), layout.columns.end());
  TextTable table;
  for (const TableColumn& column : columns) table.columns.push_back(column.head);
  for (const TableRow& row : rows) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const TableColumn& column : columns) cells.push_back(column.cell(row));
  }
  return fmt::format("\n{}\n({})\n{}", layout.title, layout.legend, render(table));
}

std::string row_label(const TableRow& row, const std::vector<Axis>& varying) {
  std::string label =
      fmt::format("EP{} {} tok/group", plain_text(find_value(*row.record, "point.ep_size")),
                  plain_text(find_value(*row.record, "point.tokens_global")));
  for (const Axis& axis : varying) label += fmt::format(" {} {}", axis.name, axis.text(row));
  return label;
}

std::string notes_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying) {
  std::string unmeasured, warnings;
  for (const TableRow& row : rows) {
    const std::string label = row_label(row, varying);
    if (!has_row(*row.record)) {
      unmeasured += fmt::format("  {}: {}: {}\n", label, find_text(*row.record, "state"),
                                find_text(*row.record, "reason"));
    }
    const Json* list = find_value(*row.record, "warnings");
    if (list == nullptr || !list->is_array()) continue;
    for (const Json& warning : *list) {
      warnings += fmt::format("  {}: {}\n", label, plain_text(&warning));
    }
  }
  std::string text;
  if (!unmeasured.empty()) text += "\nNot measured\n" + unmeasured;
  if (!warnings.empty()) text += "\nWarnings\n" + warnings;
  return text;
}

std::string group_text(Group group) {
  const VaryingAxes axes = split_axes(group.rows);
  sort_rows(axes.varying, group.rows);
  std::vector<TableRow> measured;
  std::copy_if(group.rows.begin(), group.rows.end(), std::back_inserter(measured),
               [](const TableRow& row) { return has_row(*row.record); });
  std::string text = heading(group.rows.front(), axes) + mark_lines(measured);
  if (!measured.empty()) {
    for (const TableLayout& layout : table_layouts()) {
      text += table_text(layout, axes.varying, measured);
    }
  }
  std::vector<TableRow> competing = measured;
  std::erase_if(competing, [](const TableRow& row) { return copies_locally(*row.record); });
  return text + verdict_text(competing, axes.varying) + baseline_text(competing, axes.varying) +
         choice_text(measured, axes.varying) + prediction_text(measured, axes.varying) +
         interval_text(measured, axes.varying) + notes_text(group.rows, axes.varying) +
         ladder_text(group.rows, axes.varying) + frontier_text(group.rows, axes.varying);
}

std::vector<Section> make_sections(const std::vector<RunData>& runs) {
  std::vector<Section> sections;
  for (const RunData& run : runs) {
    const std::string identity = plain_text(find_value(run.run, "identity"));
    auto section = std::find_if(sections.begin(), sections.end(), [&](const Section& other) {
      return !identity.empty() && other.identity == identity;
    });
    if (section == sections.end())
      section = sections.insert(section, Section{.identity = identity, .dirs = {}, .rows = {}});
    section->dirs.push_back(run.dir);
    section->num_planned += static_cast<int>(find_number(run.run, "num_points").value_or(0));
    const bool planned = find_value(run.run, "num_points") != nullptr;
    section->num_unfinished += planned && find_value(run.run, "finished_utc") == nullptr ? 1 : 0;
    section->ceilings += ceiling_text(run.run);
    for (const Json& record : run.points) section->rows.push_back({&record, run.dir});
  }
  return sections;
}

// "12 points: 9 measured, 3 skipped", with what is missing of runs that did not get to their end.
std::string counts_text(const Section& section) {
  const std::vector<TableRow>& rows = section.rows;
  std::map<std::string, int> counts;
  for (const TableRow& row : rows) ++counts[find_text(*row.record, "state")];
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) parts.push_back(fmt::format("{} {}", count, state));
  const std::string states = parts.empty() ? "none" : join(parts);
  if (section.num_unfinished == 0) return fmt::format("{} points: {}", rows.size(), states);
  return fmt::format("{} of {} planned points: {}; {}", rows.size(), section.num_planned, states,
                     section.dirs.size() == 1
                         ? "the run did not finish"
                         : fmt::format("{} runs did not finish", section.num_unfinished));
}

}  // namespace

std::string report_text(const std::vector<RunData>& runs) {
  std::string text;
  for (const Section& section : make_sections(runs)) {
    if (!text.empty()) text += "\n";
    text += fmt::format("# {}\n{}\n", join(section.dirs), counts_text(section));
    text += section.ceilings;
    for (Group& group : make_groups(section.rows)) text += "\n" + group_text(std::move(group));
    std::vector<const Json*> records;
    for (const TableRow& row : section.rows) records.push_back(row.record);
    text += why_text(ep_pairs(records)) + counterfactuals_text(section.rows);
  }
  return text;
}

std::string records_json(const std::vector<Json>& records) {
  std::string text = "[";
  for (const Json& record : records) {
    text += (text.size() > 1 ? ",\n" : "\n") + to_json_line(record);
  }
  return text + "\n]\n";
}

std::string report_json(const std::vector<Json>& records, const Json& parts) {
  std::string text = "{\"points\": " + records_json(records);
  for (const auto& [key, part] : parts.items()) {
    text += fmt::format(",\"{}\": {}\n", key, to_json_line(part));
  }
  return text + "}\n";
}

}  // namespace epsweep
