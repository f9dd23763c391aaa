#include "app/plan_table.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/experiment.h"
#include "base/statistics.h"
#include "base/text.h"
#include "costs/ffn_work.h"
#include "costs/memory.h"
#include "report/point_record.h"
#include "report/text_table.h"
#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {
namespace {

// Rows of all layers' experts, the same for all points that share a trace.
struct RoutedRows {
  std::vector<std::vector<std::int64_t>> of_layer;  // [layers][num_experts]
  std::uint64_t checksum = 0;
};

class RoutedRowsCache {
 public:
  const RoutedRows& of(const SweepPoint& point) {
    RoutedRows& rows = rows_[trace_key(point)];
    if (!rows.of_layer.empty()) return rows;
    std::vector<Trace> traces;
    traces.reserve(static_cast<std::size_t>(point.layers));
    for (int layer = 0; layer < point.layers; ++layer) traces.push_back(draw_trace(point, layer));
    for (const Trace& trace : traces) rows.of_layer.push_back(rows_per_expert(trace));
    rows.checksum = routing_checksum(traces);
    return rows;
  }

 private:
  std::map<std::string, RoutedRows> rows_;
};

struct PlannedPoint {
  std::string reason;  // why it cannot run; the rest is empty then
  std::vector<std::int64_t> local_experts, tokens_per_rank, weight_bytes;  // by EP rank
  RowSummary expert_rows, rank_rows;                                       // over all layers
  double active_experts = 0;  // distinct experts with rows, mean over layers
  std::uint64_t checksum = 0;
  std::optional<std::string> fitted_on;  // of placements that look at rows
  int num_groups = 0, num_idle = 0;      // of a world whose size was given
  MemoryNeed memory;                     // of the rank that needs most
  std::string shortfall;                 // against a memory that was given; empty if it fits
};

std::string reason_in_world(const SweepPoint& point, int world_size) {
  if (const auto reason = reason_not_to_plan(point)) return *reason;
  if (world_size == 0 || point.ep_size <= world_size) return "";
  return fmt::format("ep_size {} needs more than {} ranks", point.ep_size, world_size);
}

// Tokens choose between replicas, so those need the routing itself, drawn again: kept for all
// layers it would be the largest thing in memory.
std::vector<std::int64_t> slot_rows(const SweepPoint& point, int layer, const Placement& placement,
                                    const std::vector<std::int64_t>& rows_per_expert) {
  if (point.redundant_slots == 0) return rows_per_slot(placement, rows_per_expert);
  return rows_per_slot(placement, draw_trace(point, layer));
}

void place_rows(const SweepPoint& point, const RoutedRows& rows, PlannedPoint& planned) {
  std::vector<std::int64_t> expert_rows, rank_rows;
  for (int layer = 0; layer < point.layers; ++layer) {
    const std::vector<std::int64_t>& experts = rows.of_layer[static_cast<std::size_t>(layer)];
    const Placement placement = place_experts(point, layer, experts);
    expert_rows.insert(expert_rows.end(), experts.begin(), experts.end());
    const auto ranks = sum_by_rank(placement, slot_rows(point, layer, placement, experts));
    rank_rows.insert(rank_rows.end(), ranks.begin(), ranks.end());
    planned.memory = memory_need(point, placement, std::ranges::max(rank_rows));
    if (layer != 0) continue;  // layers differ in which experts a rank has, not in how many
    for (const std::vector<int>& local : placement.experts_of_rank) {
      planned.local_experts.push_back(static_cast<std::int64_t>(local.size()));
    }
    planned.weight_bytes = weight_bytes_per_rank(point.model, point.dtype, placement);
    for (std::int64_t& bytes : planned.weight_bytes) bytes *= point.layers;
  }
  planned.expert_rows = summarize_rows(expert_rows);
  planned.rank_rows = summarize_rows(rank_rows);
}

PlannedPoint plan_point(const SweepPoint& point, const LaunchLimits& limits,
                        RoutedRowsCache& cache) {
  PlannedPoint planned;
  planned.reason = reason_in_world(point, limits.world_size);
  if (!planned.reason.empty()) return planned;
  for (const TokenRange& range : token_ranges(point))
    planned.tokens_per_rank.push_back(range.size());
  const RoutedRows& rows = cache.of(point);
  planned.checksum = rows.checksum;
  planned.fitted_on = placement_fitted_on(point);
  place_rows(point, rows, planned);
  planned.active_experts =
      (1 - planned.expert_rows.empty_fraction) * static_cast<double>(point.model.num_experts);
  if (limits.memory_bytes > 0) {
    planned.shortfall = memory_shortfall(planned.memory, limits.memory_bytes).value_or("");
  }
  if (limits.world_size > 0) {
    const GroupLayout layout =
        group_layout(limits.world_size, point.ep_size, point.mapping, point.groups);
    planned.num_groups = layout.num_groups;
    planned.num_idle = static_cast<int>(layout.idle_ranks.size());
  }
  return planned;
}

// "8", or "13..12" where ranks differ.
std::string range_text(const std::vector<std::int64_t>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return least == most ? std::to_string(most) : fmt::format("{}..{}", most, least);
}

std::string mib_text(std::int64_t bytes) {
  return short_number(static_cast<double>(bytes) / (1024.0 * 1024.0));
}

std::string feasible_text(const PlannedPoint& planned) {
  if (!planned.shortfall.empty()) return planned.shortfall;
  return planned.num_idle > 0 ? fmt::format("yes, {} idle", planned.num_idle) : "yes";
}

// One number where all ranks have it, the vector where they differ.
Json per_rank_json(const std::vector<std::int64_t>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return least == most ? Json(most) : Json(values);
}

Json point_json(const SweepPoint& point, const PlannedPoint& planned) {
  Json json = point_axes_json(point);
  json["id"] = point_id(point);
  const std::string& reason = planned.reason.empty() ? planned.shortfall : planned.reason;
  json["feasible"] = reason.empty();
  json["reason"] = reason.empty() ? Json(nullptr) : Json(reason);
  if (!planned.reason.empty()) return json;
  json["placement_fitted_on"] = json_or_null(planned.fitted_on);
  json["local_experts"] = per_rank_json(planned.local_experts);
  json["tokens_per_rank"] = per_rank_json(planned.tokens_per_rank);
  json["rows_per_expert"] = row_summary_json(planned.expert_rows);
  json["rows_per_rank"] = row_summary_json(planned.rank_rows);
  json["active_experts"] = planned.active_experts;
  json["weight_bytes_per_rank"] = per_rank_json(planned.weight_bytes);
  json["memory_bytes_per_rank"] = planned.memory.total();
  json["routing_checksum"] = hex64(planned.checksum);
  if (planned.num_groups > 0) {
    json["num_groups"] = planned.num_groups;
    json["num_idle_ranks"] = planned.num_idle;
  }
  return json;
}

// An axis is a column only where it varies.
struct AxisColumn {
  std::string header;
  std::string (*text)(const SweepPoint& point);
};
const std::vector<AxisColumn>& axis_columns() {
  static const std::vector<AxisColumn> columns = {
      {"routing", [](const SweepPoint& p) { return p.routing.label(); }},
      {"placement", [](const SweepPoint& p) { return p.placement; }},
      {"redundant_slots", [](const SweepPoint& p) { return std::to_string(p.redundant_slots); }},
      {"transport", [](const SweepPoint& p) { return p.transport; }},
      {"grouped_gemm", [](const SweepPoint& p) { return p.grouped_gemm; }},
      {"dtype", [](const SweepPoint& p) { return std::string(to_string(p.dtype)); }},
      {"mapping", [](const SweepPoint& p) { return to_string(p.mapping); }},
      {"repeat", [](const SweepPoint& p) { return std::to_string(p.repeat); }},
  };
  return columns;
}

const std::vector<TextColumn> kFactColumns = {
    {"tok/rank"}, {"experts"},  {"M mean"},  {"M 10/50/90"}, {"M max"},
    {"max/mean"}, {"empty%"},   {"active"},  {"rows/rank"},  {"rows 10/50/90"},
    {"rows max"}, {"max/mean"}, {"weights"}, {"MiB/rank"},   {"feasible", Align::left}};

std::vector<std::string> point_row(const SweepPoint& point, const PlannedPoint& planned,
                                   const std::vector<AxisColumn>& axes) {
  std::vector<std::string> row = {std::to_string(point.index), std::to_string(point.ep_size),
                                  std::to_string(point.tokens_global())};
  for (const AxisColumn& axis : axes) row.push_back(axis.text(point));
  if (!planned.reason.empty()) {
    row.resize(3 + axes.size() + kFactColumns.size(), "-");
    row.back() = planned.reason;
    return row;
  }
  const RowSummary& expert = planned.expert_rows;
  const RowSummary& rank = planned.rank_rows;
  const std::vector<std::string> facts = {
      range_text(planned.tokens_per_rank),
      range_text(planned.local_experts),
      short_number(expert.mean),
      fmt::format("{}/{}/{}", expert.p10, expert.median, expert.p90),
      std::to_string(expert.max),
      short_number(expert.max_over_mean),
      short_percent(expert.empty_fraction),
      short_number(planned.active_experts),
      short_number(rank.mean),
      fmt::format("{}/{}/{}", rank.p10, rank.median, rank.p90),
      std::to_string(rank.max),
      short_number(rank.max_over_mean),
      mib_text(std::ranges::max(planned.weight_bytes)),
      mib_text(planned.memory.total()),
      feasible_text(planned)};
  row.insert(row.end(), facts.begin(), facts.end());
  return row;
}

// What fitted placements show is better than what they will meet on other tokens.
std::string fitted_note(const Plan& plan) {
  std::set<std::string> notes;
  for (const SweepPoint& point : plan.points) {
    if (const auto fitted_on = placement_fitted_on(point)) {
      notes.insert(fmt::format("placement {}: fitted on {}.\n", point.placement, *fitted_on));
    }
  }
  return fmt::format("{}", fmt::join(notes, ""));
}

}  // namespace

Json plan_json(const SweepSpec& spec, const Plan& plan, const LaunchLimits& limits) {
  RoutedRowsCache cache;
  Json points = Json::array();
  for (const SweepPoint& point : plan.points) {
    points.push_back(point_json(point, plan_point(point, limits, cache)));
  }
  return {{"experiment", sweep_spec_json(spec)},
          {"plan_checksum", hex64(plan.fingerprint)},
          {"points", std::move(points)}};
}

std::string plan_table(const SweepSpec& spec, const Plan& plan, const LaunchLimits& limits) {
  std::vector<AxisColumn> axes;
  for (const AxisColumn& axis : axis_columns()) {
    const auto differs = [&](const SweepPoint& point) {
      return axis.text(point) != axis.text(plan.points.front());
    };
    if (std::ranges::any_of(plan.points, differs)) axes.push_back(axis);
  }
  RoutedRowsCache cache;
  std::string text = fmt::format("{}: {} points, model {} ({} experts, top-{}), plan checksum {}\n",
                                 spec.name, plan.points.size(), spec.model.name,
                                 spec.model.num_experts, spec.model.top_k, hex64(plan.fingerprint));
  for (const std::string& mode : kConcurrencyModeNames) {
    TextTable table{.columns = {{"#"}, {"EP"}, {"tokens"}}, .rows = {}};
    for (const AxisColumn& axis : axes) table.columns.push_back({axis.header, Align::left});
    table.columns.insert(table.columns.end(), kFactColumns.begin(), kFactColumns.end());
    for (const SweepPoint& point : plan.points) {
      if (to_string(point.concurrency.mode) != mode) continue;
      table.rows.push_back(point_row(point, plan_point(point, limits, cache), axes));
    }
    if (!table.rows.empty()) text += fmt::format("\nconcurrency {}\n{}", mode, render(table));
  }
  text +=
      "\nM: rows per expert; rows: per rank; both over all layers. tokens: of one EP group. "
      "experts: slots of a rank, replicas included. weights: of experts, MiB/rank: with buffers, "
      "both of the rank with most.\n";
  return text + fitted_note(plan);
}

}  // namespace epsweep
