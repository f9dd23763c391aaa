#include "app/planned_point.h"

#include <fmt/format.h>

#include "app/experiment.h"
#include "device/transport.h"
#include "workload/pair_capacity.h"
#include "workload/placement_traces.h"

namespace epsweep {
namespace {

std::string reason_in_world(const SweepPoint& point, int world_size) {
  if (const auto reason = reason_not_to_plan(point)) return *reason;
  if (world_size == 0 || point.ep_size <= world_size) return "";
  return fmt::format("ep_size {} needs more than {} ranks", point.ep_size, world_size);
}

std::vector<std::int64_t> concatenated(const std::vector<std::vector<std::int64_t>>& layers) {
  std::vector<std::int64_t> all;
  for (const auto& layer : layers) all.insert(all.end(), layer.begin(), layer.end());
  return all;
}

void add_work(const SweepPoint& point, PlanCaches& caches, PlannedPoint& planned) {
  PointWorkloadSum sum(point, places_from_topology(point));
  ExpectedCopiesSum expected(point, declared_places(point), caches.samples);
  for (int routing = 0; routing < point.num_routings(); ++routing) {
    const int layer = point.layer_of(routing);
    const Placement placement =
        place_experts(point, layer, rows_to_fit(point, layer, caches.traces));
    sum.add_layer(caches.traces.of(at_step_of(point, routing), layer), placement);
    if (routing >= point.layers) continue;
    sum.score_layer(placement, caches.traces);
    expected.add_layer(layer, placement);
  }
  const bool fixed = TransportCatalog::instance().at(point.transport).capacity == Capacity::fixed;
  if (fixed && planned.reason.empty()) {
    planned.reason = capacity_refusal(point, sum.most_pair_rows()).value_or("");
  }
  planned.work = sum.finish(fixed ? pair_capacity(point, sum.most_pair_rows()) : 0);
  planned.expected = expected.finish();
  if (foresight_of(point) == Foresight::uniform) {
    planned.expected_active_experts =
        expected_active_experts(point.model.num_experts, point.model.top_k, point.tokens_global());
  }
}

}  // namespace

std::string why_not(const PlannedPoint& planned) {
  if (!planned.reason.empty()) return planned.reason;
  if (planned.stop) return to_string(planned.stop->kind) + ": " + planned.stop->reason;
  return planned.shortfall;
}

PlannedPoint plan_point(const SweepPoint& point, const LaunchLimits& limits, PlanCaches& caches) {
  PlannedPoint planned;
  planned.reason = reason_in_world(point, limits.world_size);
  if (!planned.reason.empty()) return planned;
  for (const TokenRange& range : token_ranges(point)) {
    planned.tokens_per_rank.push_back(range.size());
  }
  add_work(point, caches, planned);
  planned.expert_rows = summarize_rows(concatenated(planned.work.rows_per_expert));
  planned.rank_rows = summarize_rows(concatenated(planned.work.rows_per_rank));
  planned.active_experts =
      (1 - planned.expert_rows.empty_fraction) * static_cast<double>(point.model.num_experts);
  planned.memory_bytes = limits.memory_bytes;
  if (planned.memory_bytes == 0 && point.hardware) {
    planned.memory_bytes = point.hardware->memory_bytes.value_or(0);
  }
  if (planned.memory_bytes > 0) {
    planned.shortfall = memory_shortfall(planned.work.memory, planned.memory_bytes).value_or("");
  }
  planned.serving = serving_memory(point);
  if (limits.world_size > 0) {
    const GroupLayout layout =
        group_layout(limits.world_size, point.ep_size, point.mapping, point.groups);
    planned.num_groups = layout.num_groups;
    planned.num_idle = static_cast<int>(layout.idle_ranks.size());
  }
  return planned;
}

}  // namespace epsweep
