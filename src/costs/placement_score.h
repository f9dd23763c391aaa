// What a placement does to a trace: imbalance before and after, what it moves and what it costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/sweep_point.h"
#include "workload/placement.h"

namespace epsweep {

// max / mean of the ranks' rows. Layers without rows have none and stay out of the summary.
struct RankImbalance {
  std::vector<std::optional<double>> max_over_mean;  // [layers]
  std::optional<double> mean_over_layers;
  std::optional<double> worst;
  int worst_layer = -1;
  // Sum over layers of max / sum over layers of mean: what a model pays whose ranks wait for each
  // other in every layer. Between the mean over layers and the worst.
  std::optional<double> sum_of_max;
};

// `rows_per_rank`: [layers][ep_size].
RankImbalance rank_imbalance(const std::vector<std::vector<std::int64_t>>& rows_per_rank);

struct PlacementScore {
  std::string judged_on;
  RankImbalance before;                 // contiguous experts, on the trace judged on
  RankImbalance judged;                 // the placement, on the trace judged on
  std::optional<RankImbalance> fitted;  // the placement, on the trace it was fitted to: in-sample
  // Expected max/mean of uniform routing at the judged tokens (costs/skew.h).
  std::optional<double> uniform_floor;
  std::vector<std::optional<double>> skew_wall;  // [layers], of the trace judged on (costs/skew.h)
  std::optional<double> min_skew_wall, median_skew_wall;
  std::vector<std::int64_t> moved_slots;         // [layers], on another rank than contiguous has it
  std::vector<std::int64_t> colocated_replicas;  // [layers], second ones of an expert on a rank
  std::int64_t total_moved_slots = 0, total_colocated_replicas = 0;
  // Of the rank with most slots, all layers, against contiguous experts without replicas.
  std::int64_t extra_weight_bytes_per_rank = 0;
  // Whether `before` is more than uniform routing would show: see is_rebalance_needed().
  bool rebalance_needed = false;
  std::vector<std::string> warnings;
};

// Below these a rebalance has nothing to gain: 1.05, or 1.25 times the floor's excess over 1, since
// the floor's formula is up to 15 % too low and few layers scatter around it.
inline constexpr double kNoRebalanceBelow = 1.05;
inline constexpr double kFloorMargin = 1.25;
bool is_rebalance_needed(const std::optional<double>& mean_over_layers,
                         const std::optional<double>& uniform_floor);

// Slots that hold an expert on another rank than `before` has it on, which has no replicas: experts
// to move, and replicas to copy.
std::int64_t count_moved_slots(const Placement& placement, const Placement& before);

// Rows of one layer of a trace.
struct LayerRows {
  std::vector<std::int64_t> per_expert;  // [num_experts]
  std::vector<std::int64_t> per_rank;    // [ep_size], of the placement
};

// Whether the tokens a placement is judged on are those it was fitted to.
enum class SeenBefore { no, yes };

// Takes one layer after the other.
class PlacementScoreSum {
 public:
  explicit PlacementScoreSum(const SweepPoint& point) : point_(point) {}
  // `fitted` only of placements that are fitted.
  void add_layer(const Placement& placement, const LayerRows& judged,
                 const std::optional<LayerRows>& fitted);
  int num_layers() const { return static_cast<int>(judged_.size()); }
  PlacementScore finish(SeenBefore seen_before);

 private:
  const SweepPoint& point_;
  PlacementScore score_;
  std::vector<std::vector<std::int64_t>> before_, judged_, fitted_;  // [layers][ep_size]
  std::int64_t extra_slots_ = 0;
};

}  // namespace epsweep
