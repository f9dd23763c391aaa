// The plan's table of placements: balance before and after, on the trace they are judged on, and
// what it costs.
#include <algorithm>

#include <fmt/format.h>

#include "app/plan_section.h"
#include "base/text.h"
#include "report/placement_json.h"

namespace epsweep {
namespace {

// Whether the experiment asks anything about placements.
bool applies(const SweepSpec& spec, const LaunchLimits&) {
  if (spec.placement.size() > 1 || spec.judge_on.has_value()) return true;
  return std::ranges::any_of(
      spec.placement, [](const PlacementChoice& choice) { return choice.name != "contiguous"; });
}

const PlacementScore& score_of(const PlannedPoint& planned) {
  return *planned.work.placement_score;
}

std::string mean_and_worst(const RankImbalance& imbalance) {
  if (!imbalance.worst.has_value()) return "-";
  return fmt::format("{:.3f} ({:.2f})", *imbalance.mean_over_layers, *imbalance.worst);
}

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio.has_value() ? fmt::format("{:.3f}", *ratio) : "-";
}

std::string wall_text(const PlacementScore& score) {
  if (!score.min_skew_wall.has_value()) return "-";
  return fmt::format("{:.0f}/{:.0f}", *score.min_skew_wall, *score.median_skew_wall);
}

std::string verdict_text(const PlacementScore& score) {
  return score.rebalance_needed ? "needed" : "no rebalance needed";
}

void put_json(const SweepPoint&, const PlannedPoint& planned, Json& json) {
  json["placement_score"] = placement_score_json(score_of(planned));
  for (const std::string& warning : score_of(planned).warnings) {
    json["warnings"].push_back(warning);
  }
}

using P = SweepPoint;
using Planned = PlannedPoint;

}  // namespace

PlanSection placement_section() {
  return {
      .title = "Placement",
      .legend =
          "max/mean of rank rows, mean over layers (worst layer). before: contiguous; after: the "
          "placement; both on the trace judged on. sum: of layers' max / of means, what ranks that "
          "wait for each other pay. in-sample: on the trace it was fitted to, no prediction. "
          "floor: uniform routing. wall: EP size from which on width stops helping, worst / median "
          "layer. moved: slots on another rank than contiguous has them; co: second replicas on a "
          "rank; +MiB: weights of a rank; both all layers.",
      .applies = applies,
      .columns =
          {{{"before"},
            [](const P&, const Planned& p) { return mean_and_worst(score_of(p).before); }},
           {{"sum"},
            [](const P&, const Planned& p) { return ratio_text(score_of(p).before.sum_of_max); }},
           {{"after"},
            [](const P&, const Planned& p) { return mean_and_worst(score_of(p).judged); }},
           {{"sum"},
            [](const P&, const Planned& p) { return ratio_text(score_of(p).judged.sum_of_max); }},
           {{"in-sample"},
            [](const P&, const Planned& p) {
              const auto& fitted = score_of(p).fitted;
              return fitted.has_value() ? mean_and_worst(*fitted) : "-";
            }},
           {{"floor"},
            [](const P&, const Planned& p) { return ratio_text(score_of(p).uniform_floor); }},
           {{"wall"}, [](const P&, const Planned& p) { return wall_text(score_of(p)); }},
           {{"moved"},
            [](const P&, const Planned& p) {
              return std::to_string(score_of(p).total_moved_slots);
            }},
           {{"co"},
            [](const P&, const Planned& p) {
              return std::to_string(score_of(p).total_colocated_replicas);
            }},
           {{"+MiB"},
            [](const P&, const Planned& p) {
              return short_number(static_cast<double>(score_of(p).extra_weight_bytes_per_rank) /
                                  0x1p20);
            }},
           {{"rebalance", Align::left},
            [](const P&, const Planned& p) { return verdict_text(score_of(p)); }}},
      .put_json = put_json};
}

}  // namespace epsweep
