#include "app/plan_table.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/plan_limits.h"
#include "app/plan_notes.h"
#include "app/plan_section.h"
#include "app/planned_ladder.h"
#include "base/text.h"

namespace epsweep {
namespace {

// An axis is a column only where it varies.
struct AxisColumn {
  std::string header;
  std::string (*text)(const SweepPoint& point);
};
const std::vector<AxisColumn>& axis_columns() {
  static const std::vector<AxisColumn> columns = {
      {"routing", [](const SweepPoint& p) { return p.routing.label(); }},
      {"placement",
       [](const SweepPoint& p) {
         return p.placement_map == nullptr ? p.placement : placement_label(p);
       }},
      {"redundant_slots", [](const SweepPoint& p) { return std::to_string(p.redundant_slots); }},
      {"exchange_unit", [](const SweepPoint& p) { return to_string(p.exchange_unit); }},
      {"transport", [](const SweepPoint& p) { return p.transport; }},
      {"launch", [](const SweepPoint& p) { return to_string(p.launch); }},
      {"grouped_gemm", [](const SweepPoint& p) { return p.grouped_gemm; }},
      {"dtype", [](const SweepPoint& p) { return std::string(to_string(p.dtype)); }},
      {"mapping", [](const SweepPoint& p) { return to_string(p.mapping); }},
      {"repeat", [](const SweepPoint& p) { return std::to_string(p.repeat); }},
  };
  return columns;
}

std::vector<AxisColumn> varying_axes(const Plan& plan) {
  std::vector<AxisColumn> axes;
  for (const AxisColumn& axis : axis_columns()) {
    const auto differs = [&](const SweepPoint& point) {
      return axis.text(point) != axis.text(plan.points.front());
    };
    if (std::ranges::any_of(plan.points, differs)) axes.push_back(axis);
  }
  return axes;
}

std::vector<std::string> key_cells(const SweepPoint& point, const std::vector<AxisColumn>& axes) {
  std::vector<std::string> cells = {std::to_string(point.index), std::to_string(point.ep_size),
                                    std::to_string(point.tokens_global())};
  for (const AxisColumn& axis : axes) cells.push_back(axis.text(point));
  return cells;
}

TextTable empty_table(const PlanSection& section, const std::vector<AxisColumn>& axes) {
  TextTable table{.columns = {{"#"}, {"EP"}, {"tokens"}}, .rows = {}};
  for (const AxisColumn& axis : axes) table.columns.push_back({axis.header, Align::left});
  for (const PlanColumn& column : section.columns) table.columns.push_back(column.head);
  return table;
}

void add_row(const PlanSection& section, const SweepPoint& point, const PlannedPoint& planned,
             const std::vector<AxisColumn>& axes, TextTable& table) {
  std::vector<std::string> row = key_cells(point, axes);
  for (const PlanColumn& column : section.columns) {
    const bool is_last = &column == &section.columns.back();
    row.push_back(planned.reason.empty() || is_last ? column.text(point, planned) : "-");
  }
  table.rows.push_back(std::move(row));
}

// What placements were fitted to and judged on, and what to think of it.
std::set<std::string> placement_notes(const SweepPoint& point, const PlannedPoint& planned) {
  std::set<std::string> notes;
  if (const auto& fitted_on = planned.work.placement_fitted_on) {
    notes.insert(fmt::format("placement {}: fitted on {}.\n", point.placement, *fitted_on));
  }
  if (!planned.work.placement_score.has_value()) return notes;
  if (point.judge_on.has_value()) {
    notes.insert(
        fmt::format("placements judged on {}.\n", planned.work.placement_score->judged_on));
  }
  for (const std::string& warning : planned.work.placement_score->warnings) {
    notes.insert(fmt::format("warning: {}.\n", warning));
  }
  return notes;
}

std::vector<PlanSection> sections_of(const SweepSpec& spec, const LaunchLimits& limits) {
  std::vector<PlanSection> sections = plan_sections();
  std::erase_if(sections, [&](const PlanSection& one) { return !one.applies(spec, limits); });
  return sections;
}

Json point_json(const SweepPoint& point, const PlannedPoint& planned,
                const std::vector<PlanSection>& sections) {
  Json json = point_axes_json(point);
  json["id"] = point_id(point);
  const std::string reason = why_not(planned);
  json["feasible"] = reason.empty();
  json["reason"] = reason.empty() ? Json(nullptr) : Json(reason);
  json["stop"] = ladder_stop_json(planned.stop);
  if (!planned.reason.empty()) return json;
  for (const PlanSection& section : sections) section.put_json(point, planned, json);
  return json;
}

// " (4 of them bridges, 6 counterfactuals)"; empty for none.
std::string explaining_text(const Plan& plan) {
  std::vector<std::string> parts;
  const auto add = [&](LoadFrom from, const char* name) {
    const auto count = std::ranges::count(plan.points, from, &SweepPoint::load_from);
    const char* const of_them = parts.empty() ? " of them" : "";
    if (count > 0) parts.push_back(fmt::format("{}{} {}", count, of_them, name));
  };
  add(LoadFrom::bridge, "bridges");
  add(LoadFrom::counterfactual, "counterfactuals");
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, ", "));
}

}  // namespace

Json plan_json(const SweepSpec& spec, const Plan& plan, const LaunchLimits& limits) {
  const std::vector<PlanSection> sections = sections_of(spec, limits);
  PlannedLadder ladder(limits);
  Json points = Json::array();
  for (const SweepPoint& point : plan.points) {
    points.push_back(point_json(point, ladder.next(point), sections));
  }
  return {{"experiment", sweep_spec_json(spec)},
          {"plan_checksum", hex64(plan.fingerprint)},
          {"notes", plan_notes_json(plan_notes(plan))},
          {"most_added_loads", most_added_loads(spec)},
          {"points", std::move(points)}};
}

std::string plan_table(const SweepSpec& spec, const Plan& plan, const LaunchLimits& limits) {
  const std::vector<AxisColumn> axes = varying_axes(plan);
  const std::vector<PlanSection> sections = sections_of(spec, limits);
  // [concurrency mode][section]; loads of different modes are never in one table.
  std::vector<std::vector<TextTable>> tables(kConcurrencyModeNames.size());
  for (std::vector<TextTable>& of_mode : tables) {
    for (const PlanSection& section : sections) of_mode.push_back(empty_table(section, axes));
  }
  PlannedLadder ladder(limits);
  std::set<std::string> notes;
  for (const SweepPoint& point : plan.points) {
    const PlannedPoint planned = ladder.next(point);
    notes.merge(placement_notes(point, planned));
    std::vector<TextTable>& of_mode = tables[static_cast<std::size_t>(point.concurrency.mode)];
    for (std::size_t s = 0; s < sections.size(); ++s) {
      if (s > 0 && !planned.reason.empty()) continue;
      add_row(sections[s], point, planned, axes, of_mode[s]);
    }
  }
  std::string text =
      fmt::format("{}: {} points{}, model {} ({} experts, top-{}), plan checksum {}\n", spec.name,
                  plan.points.size(), explaining_text(plan), spec.model.name,
                  spec.model.num_experts, spec.model.top_k, hex64(plan.fingerprint));
  for (std::size_t s = 0; s < sections.size(); ++s) {
    for (std::size_t mode = 0; mode < tables.size(); ++mode) {
      if (tables[mode][s].rows.empty()) continue;
      text += fmt::format("\n{}, concurrency {}\n{}", sections[s].title,
                          kConcurrencyModeNames[mode], render(tables[mode][s]));
    }
    text += fmt::format("\n{}\n", sections[s].legend);
  }
  return text + limits_text(spec) + fmt::format("{}", fmt::join(notes, "")) +
         plan_notes_text(plan_notes(plan));
}

}  // namespace epsweep
