#include "costs/placement_score.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/statistics.h"
#include "costs/skew.h"
#include "workload/eplb.h"
#include "workload/placement_traces.h"

namespace epsweep {
namespace {

Placement contiguous(const Placement& placement) {
  return make_placement("contiguous",
                        {.num_experts = placement.num_experts, .ep_size = placement.ep_size});
}

std::int64_t most_slots(const Placement& placement) {
  std::size_t most = 0;
  for (const std::vector<int>& experts : placement.experts_of_rank) {
    most = std::max(most, experts.size());
  }
  return static_cast<std::int64_t>(most);
}

// Ranks may have different numbers of slots, so the equal blocks of count_colocated() do not do.
std::int64_t count_second_replicas(const Placement& placement) {
  std::int64_t second = 0;
  for (const std::vector<int>& experts : placement.experts_of_rank) {
    second += count_colocated(experts, 1);
  }
  return second;
}

std::int64_t judged_tokens(const SweepPoint& point) {
  return point.judge_on.has_value() ? judged_point(point).tokens_global() : point.tokens_global();
}

std::optional<double> floor_of(const SweepPoint& point) {
  if (point.ep_size > point.model.num_experts + point.redundant_slots) return std::nullopt;
  return uniform_skew_floor({.num_experts = point.model.num_experts,
                             .top_k = point.model.top_k,
                             .num_tokens = judged_tokens(point),
                             .ep_size = point.ep_size});
}

void summarize_walls(PlacementScore& score) {
  std::vector<double> walls;
  for (const std::optional<double>& wall : score.skew_wall) {
    if (wall.has_value()) walls.push_back(*wall);
  }
  if (walls.empty()) return;
  score.min_skew_wall = std::ranges::min(walls);
  score.median_skew_wall = nearest_rank(walls, 0.5);
}

std::vector<std::string> warnings_of(const SweepPoint& point, SeenBefore seen_before) {
  if (!is_fitted(point) || judged_tokens(point) == 0) return {};
  if (seen_before == SeenBefore::yes) {
    return {
        fmt::format("placement {} is judged on tokens it was fitted to (in-sample): it looks "
                    "better than it will on others; placement.fit_on names another trace",
                    placement_label(point))};
  }
  if (const std::string recording = shared_recording(point); !recording.empty()) {
    return {
        fmt::format("placement {} is fitted to and judged on the same recording, {}: it looks "
                    "better than it will on another",
                    placement_label(point), recording)};
  }
  return {};
}

}  // namespace

RankImbalance rank_imbalance(const std::vector<std::vector<std::int64_t>>& rows_per_rank) {
  RankImbalance result;
  double sum_of_ratios = 0, sum_of_max = 0, sum_of_mean = 0;
  int num_layers = 0;
  for (const std::vector<std::int64_t>& rows : rows_per_rank) {
    const RowSummary summary = summarize_rows(rows);
    result.max_over_mean.push_back(summary.max_over_mean);
    if (!summary.max_over_mean.has_value()) continue;
    ++num_layers;
    sum_of_ratios += *summary.max_over_mean;
    sum_of_max += static_cast<double>(summary.max);
    sum_of_mean += summary.mean;
    if (result.worst.has_value() && *result.worst >= *summary.max_over_mean) continue;
    result.worst = summary.max_over_mean;
    result.worst_layer = static_cast<int>(result.max_over_mean.size()) - 1;
  }
  if (num_layers == 0) return result;
  result.mean_over_layers = sum_of_ratios / num_layers;
  result.sum_of_max = sum_of_max / sum_of_mean;
  return result;
}

bool is_rebalance_needed(const std::optional<double>& mean_over_layers,
                         const std::optional<double>& uniform_floor) {
  if (!mean_over_layers.has_value()) return false;
  const double chance = 1 + kFloorMargin * (uniform_floor.value_or(1) - 1);
  return *mean_over_layers > std::max(kNoRebalanceBelow, chance);
}

std::int64_t count_moved_slots(const Placement& placement, const Placement& before) {
  std::int64_t moved = 0;
  for (std::size_t slot = 0; slot < placement.expert_of_slot.size(); ++slot) {
    const auto home = static_cast<std::size_t>(placement.expert_of_slot[slot]);
    if (placement.rank_of_slot[slot] != before.rank_of_slot[home]) ++moved;
  }
  return moved;
}

void PlacementScoreSum::add_layer(const Placement& placement, const LayerRows& judged,
                                  const std::optional<LayerRows>& fitted) {
  const Placement unmoved = contiguous(placement);
  before_.push_back(rows_per_rank(unmoved, judged.per_expert));
  judged_.push_back(judged.per_rank);
  if (fitted.has_value()) fitted_.push_back(fitted->per_rank);
  score_.skew_wall.push_back(skew_wall(judged.per_expert, placement));
  score_.moved_slots.push_back(count_moved_slots(placement, unmoved));
  score_.total_moved_slots += score_.moved_slots.back();
  score_.colocated_replicas.push_back(count_second_replicas(placement));
  score_.total_colocated_replicas += score_.colocated_replicas.back();
  extra_slots_ += most_slots(placement) - most_slots(unmoved);
}

PlacementScore PlacementScoreSum::finish(SeenBefore seen_before) {
  score_.judged_on = placement_judged_on(point_);
  score_.before = rank_imbalance(before_);
  score_.judged = rank_imbalance(judged_);
  if (!fitted_.empty()) score_.fitted = rank_imbalance(fitted_);
  score_.uniform_floor = floor_of(point_);
  summarize_walls(score_);
  score_.extra_weight_bytes_per_rank =
      extra_slots_ * point_.model.expert_params() * bytes_of(point_.dtype);
  score_.rebalance_needed =
      is_rebalance_needed(score_.before.mean_over_layers, score_.uniform_floor);
  score_.warnings = warnings_of(point_, seen_before);
  return std::move(score_);
}

}  // namespace epsweep
