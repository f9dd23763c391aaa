// The plan's first table: tokens, experts and rows of every point, and whether it can run.
#include <algorithm>

#include <fmt/format.h>

#include "app/plan_section.h"
#include "base/text.h"
#include "report/point_record.h"

namespace epsweep {
namespace {

std::string mib_text(std::int64_t bytes) {
  return short_number(static_cast<double>(bytes) / (1024.0 * 1024.0));
}

std::string feasible_text(const PlannedPoint& planned) {
  if (std::string reason = why_not(planned); !reason.empty()) return reason;
  return planned.num_idle > 0 ? fmt::format("yes, {} idle", planned.num_idle) : "yes";
}

std::string spread_text(const RowSummary& rows) {
  return fmt::format("{}/{}/{}", rows.p10, rows.median, rows.p90);
}

std::int64_t weight_bytes(const SweepPoint& point, std::int64_t bytes_of_layer) {
  return bytes_of_layer * point.layers;
}

void put_json(const SweepPoint& point, const PlannedPoint& planned, Json& json) {
  const PointWorkload& work = planned.work;
  std::vector<std::int64_t> weights = work.weight_bytes_per_rank;
  for (std::int64_t& bytes : weights) bytes = weight_bytes(point, bytes);
  json["placement_fitted_on"] = json_or_null(work.placement_fitted_on);
  json["local_experts"] = per_rank_json(work.slots_per_rank);
  json["tokens_per_rank"] = per_rank_json(planned.tokens_per_rank);
  json["rows_per_expert"] = row_summary_json(planned.expert_rows);
  json["rows_per_rank"] = row_summary_json(planned.rank_rows);
  json["active_experts"] = planned.active_experts;
  json["expected_active_experts"] = json_or_null(planned.expected_active_experts);
  json["weight_bytes_per_rank"] = per_rank_json(weights);
  json["memory_bytes_per_rank"] = work.memory.total();
  json["routing_checksum"] = hex64(work.routing_checksum);
  if (planned.num_groups > 0) {
    json["num_groups"] = planned.num_groups;
    json["num_idle_ranks"] = planned.num_idle;
  }
}

using P = SweepPoint;
using Planned = PlannedPoint;

}  // namespace

PlanSection rows_section() {
  return {
      .title = "Rows",
      .legend =
          "M: rows per expert; rows: per rank; both over all layers. tokens: of one EP group. "
          "exp: active experts expected of uniform routing. "
          "experts: slots of a rank, replicas included. weights: of experts, MiB/rank: with "
          "buffers, both of the rank with most.",
      .applies = [](const SweepSpec&, const LaunchLimits&) { return true; },
      .columns =
          {{{"tok/rank"}, [](const P&, const Planned& p) { return range_text(p.tokens_per_rank); }},
           {{"experts"},
            [](const P&, const Planned& p) { return range_text(p.work.slots_per_rank); }},
           {{"M mean"},
            [](const P&, const Planned& p) { return short_number(p.expert_rows.mean); }},
           {{"M 10/50/90"}, [](const P&, const Planned& p) { return spread_text(p.expert_rows); }},
           {{"M max"},
            [](const P&, const Planned& p) { return std::to_string(p.expert_rows.max); }},
           {{"max/mean"},
            [](const P&, const Planned& p) { return short_number(p.expert_rows.max_over_mean); }},
           {{"empty%"},
            [](const P&, const Planned& p) { return short_percent(p.expert_rows.empty_fraction); }},
           {{"active"}, [](const P&, const Planned& p) { return short_number(p.active_experts); }},
           {{"exp"},
            [](const P&, const Planned& p) { return short_number(p.expected_active_experts); }},
           {{"rows/rank"},
            [](const P&, const Planned& p) { return short_number(p.rank_rows.mean); }},
           {{"rows 10/50/90"}, [](const P&, const Planned& p) { return spread_text(p.rank_rows); }},
           {{"rows max"},
            [](const P&, const Planned& p) { return std::to_string(p.rank_rows.max); }},
           {{"max/mean"},
            [](const P&, const Planned& p) { return short_number(p.rank_rows.max_over_mean); }},
           {{"weights"},
            [](const P& point, const Planned& p) {
              return mib_text(weight_bytes(point, std::ranges::max(p.work.weight_bytes_per_rank)));
            }},
           {{"MiB/rank"},
            [](const P&, const Planned& p) { return mib_text(p.work.memory.total()); }},
           {{"feasible", Align::left},
            [](const P&, const Planned& p) { return feasible_text(p); }}},
      .put_json = put_json};
}

}  // namespace epsweep
