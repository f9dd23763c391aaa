#include "report/placement_json.h"

#include <fmt/format.h>

namespace epsweep {
namespace {

Json list_json(const std::vector<std::optional<double>>& values) {
  Json json = Json::array();
  for (const std::optional<double>& value : values) json.push_back(json_or_null(value));
  return json;
}

Json imbalance_json(const RankImbalance& imbalance) {
  return {{"mean_over_layers", json_or_null(imbalance.mean_over_layers)},
          {"worst", json_or_null(imbalance.worst)},
          {"worst_layer", imbalance.worst_layer < 0 ? Json(nullptr) : Json(imbalance.worst_layer)},
          {"sum_of_max", json_or_null(imbalance.sum_of_max)},
          {"per_layer", list_json(imbalance.max_over_mean)}};
}

}  // namespace

Json placement_score_json(const PlacementScore& score) {
  return {{"judged_on", score.judged_on},
          {"before", imbalance_json(score.before)},
          {"judged", imbalance_json(score.judged)},
          {"fitted", score.fitted.has_value() ? imbalance_json(*score.fitted) : Json(nullptr)},
          {"uniform_floor", json_or_null(score.uniform_floor)},
          {"rebalance_needed", score.rebalance_needed},
          {"skew_wall",
           {{"min", json_or_null(score.min_skew_wall)},
            {"median", json_or_null(score.median_skew_wall)},
            {"per_layer", list_json(score.skew_wall)}}},
          {"moved_slots", {{"total", score.total_moved_slots}, {"per_layer", score.moved_slots}}},
          {"colocated_replicas",
           {{"total", score.total_colocated_replicas}, {"per_layer", score.colocated_replicas}}},
          {"extra_weight_bytes_per_rank", score.extra_weight_bytes_per_rank}};
}

Json placement_score_formulas() {
  return {
      {"before, judged, fitted",
       "max / mean of rank rows: contiguous experts and the placement on the trace judged on, the "
       "placement on the trace it was fitted to (in-sample, no prediction); sum_of_max: sum over "
       "layers of max / sum over layers of mean"},
      {"uniform_floor",
       "expected max / mean of uniform routing at the judged tokens: 1 + z * sd / mean, z the "
       "normal quantile at (P - 0.375) / (P + 0.25), variance C*k*f*(1-f)*(E-k)/(E-1), f = 1/P"},
      {"rebalance_needed",
       fmt::format("before.mean_over_layers is above {} and above 1 + {} * (uniform_floor - 1)",
                   kNoRebalanceBelow, kFloorMargin)},
      {"skew_wall",
       "per layer min over experts of replicas / share of all assignments: the EP size from which "
       "on width stops helping; median is nearest rank over layers"},
      {"moved_slots", "slots whose expert contiguous placement has on another rank, replicas too"},
      {"colocated_replicas", "slots of an expert that its rank has already"},
      {"extra_weight_bytes_per_rank",
       "rank with most slots, all layers, against contiguous experts without replicas"}};
}

}  // namespace epsweep
