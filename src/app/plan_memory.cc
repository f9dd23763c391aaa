// The plan's tables of memory: what this program allocates; and what a deployment holds, the KV
// room that is left, the load it admits.
#include <fmt/format.h>

#include "app/plan_section.h"
#include "base/text.h"
#include "report/memory_json.h"

namespace epsweep {
namespace {

std::string gib_number(std::int64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 0x1.0p30);
}

std::string gib_or_dash(const std::optional<std::int64_t>& bytes) {
  return bytes ? gib_number(*bytes) : "-";
}

std::string count_or_dash(const std::optional<std::int64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

std::string verdict_text(const PlannedPoint& planned) {
  if (planned.stop) return to_string(planned.stop->kind);
  if (!planned.serving->unknown.empty()) return "unknown: " + planned.serving->unknown;
  return "fits";
}

std::string bench_verdict_text(const PlannedPoint& planned) {
  if (planned.memory_bytes == 0) return "not compared";
  return planned.shortfall.empty() ? "fits" : "device_memory";
}

void put_available(const SweepPoint&, const PlannedPoint& planned, Json& json) {
  json["available_bytes"] = planned.memory_bytes > 0 ? Json(planned.memory_bytes) : Json(nullptr);
}

void put_serving(const SweepPoint&, const PlannedPoint& planned, Json& json) {
  json["serving_memory"] = serving_memory_json(planned.serving);
}

using P = SweepPoint;
using Planned = PlannedPoint;

}  // namespace

PlanSection memory_section() {
  return {
      .title = "Memory of this program",
      .legend = "GiB of the rank with most, as `run` allocates them, and the memory available.",
      .applies =
          [](const SweepSpec& spec, const LaunchLimits& limits) {
            return spec.hardware.has_value() || limits.memory_bytes > 0;
          },
      .columns =
          {{{"weights"},
            [](const P&, const Planned& p) { return gib_number(p.work.memory.weight_bytes); }},
           {{"buffers"},
            [](const P&, const Planned& p) { return gib_number(p.work.memory.activation_bytes); }},
           {{"needed"},
            [](const P&, const Planned& p) { return gib_number(p.work.memory.total()); }},
           {{"available"},
            [](const P&, const Planned& p) {
              return p.memory_bytes > 0 ? gib_number(p.memory_bytes) : "-";
            }},
           {{"verdict", Align::left},
            [](const P&, const Planned& p) { return bench_verdict_text(p); }}},
      .put_json = put_available};
}

PlanSection serving_section() {
  return {
      .title = "Serving memory",
      .legend =
          "A deployment of the whole model, GiB of the rank with most: routed experts, other "
          "weights (a full copy), buffers of one step at the worst case of rows received per "
          "layer, KV room left at this load. B/token: KV bytes of growing layers. seq/rank: "
          "sequences the load needs; max: the most that fit with their buffers, and the step and "
          "mean rows per expert M they make.",
      .applies = [](const SweepSpec& spec,
                    const LaunchLimits&) { return spec.serving.has_value(); },
      .columns =
          {{{"experts"},
            [](const P&, const Planned& p) {
              return p.serving->expert_weight_bytes > 0 ? gib_number(p.serving->expert_weight_bytes)
                                                        : "-";
            }},
           {{"others"},
            [](const P&, const Planned& p) {
              return gib_or_dash(p.serving->non_expert_weight_bytes);
            }},
           {{"recv mean"},
            [](const P&, const Planned& p) { return short_number(p.serving->mean_recv_rows); }},
           {{"recv worst"},
            [](const P&, const Planned& p) { return std::to_string(p.serving->worst_recv_rows); }},
           {{"buffers"},
            [](const P&, const Planned& p) {
              return gib_number(p.serving->exchange_bytes_worst + p.serving->activation_bytes);
            }},
           {{"KV room"},
            [](const P&, const Planned& p) { return gib_or_dash(p.serving->kv_room_bytes); }},
           {{"B/token"},
            [](const P&, const Planned& p) {
              const KvCost& kv = p.serving->kv;
              return kv.unknown.empty() ? std::to_string(kv.growing_bytes) : "-";
            }},
           {{"seq/rank"},
            [](const P&, const Planned& p) {
              return std::to_string(p.serving->sequences_per_rank);
            }},
           {{"max"},
            [](const P&, const Planned& p) {
              return count_or_dash(p.serving->max_sequences_per_rank);
            }},
           {{"max/group"},
            [](const P&, const Planned& p) {
              return count_or_dash(p.serving->max_sequences_per_group);
            }},
           {{"max tok/step"},
            [](const P&, const Planned& p) {
              return count_or_dash(p.serving->max_tokens_per_step);
            }},
           {{"max M"},
            [](const P&, const Planned& p) {
              const auto& rows = p.serving->max_rows_per_expert;
              return rows ? short_number(*rows) : "-";
            }},
           {{"verdict", Align::left}, [](const P&, const Planned& p) { return verdict_text(p); }}},
      .put_json = put_serving};
}

}  // namespace epsweep
