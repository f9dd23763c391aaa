// The compute of every rank of an EP size that is not there, from ranks that took the place of
// some.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/stage.h"

namespace epsweep {

// What every row says whose compute was measured this way.
inline constexpr const char* kVirtualLabel = "measured compute + predicted exchange";

// What the experts of one rank have to do in one layer: rows that the trace routes to them, and
// slots that get any.
struct ShardLoad {
  std::int64_t rows = 0, slots = 0;
};
using ShardLoads = std::vector<std::vector<ShardLoad>>;  // [routings][ep_size]

// EP ranks whose shards to measure, at most `most` (>= 1) of them, heaviest first. By the most rows
// that a rank gets in one layer: the heaviest and the lightest, so that all others lie between
// measured ones, and evenly many in between. Of four and more one is the rank with most slots that
// have rows: where weights are streamed that takes longest, not rows. One alone: the heaviest.
std::vector<int> shards_to_measure(const ShardLoads& loads, int most);

// Median over iterations, and what holds it.
struct StageSpan {
  double seconds = 0, low_s = 0, high_s = 0;
};
// low and high are the interval of the median (median_interval()); of fewer than six samples, which
// have none, the fastest and the slowest. Throws RunError for no samples.
StageSpan span_of(const std::vector<double>& seconds);

// One shard that was timed.
struct MeasuredShard {
  int ep_rank = 0;
  std::vector<std::array<StageSpan, kNumStages>> of_routing;  // [routings]
};

// Whether a rank times the stage by itself: exchanges need the other ranks.
constexpr bool is_own_stage(Stage stage) {
  return stage == Stage::router || stage == Stage::permute || stage == Stage::expert_ffn ||
         stage == Stage::unpermute;
}

// Measured ranks have their own times. Of the others
//   expert_ffn  on the line between the two measured (rank, layer)s with the next fewer and the
//               next more rows; equal rows count as their mean. Below the fewest theirs: weights
//               are streamed all the same. Above the most, which happens where one rank alone was
//               measured and never with more, theirs times the rows. No rows take no time.
//   the rest    the mean of the measured ranks with the closest number of tokens
// low and high of such a time are the lowest and the highest of what it is made of.
class VirtualShards {
 public:
  // tokens_of_rank: [ep_size]; at least one measured shard, each rank once.
  VirtualShards(ShardLoads loads, std::vector<std::int64_t> tokens_of_rank,
                std::vector<MeasuredShard> measured);

  // Of an own stage.
  StageSpan at(int routing, int ep_rank, Stage stage) const;
  bool is_measured(int ep_rank) const { return find(ep_rank) != nullptr; }
  int ep_size() const { return static_cast<int>(tokens_of_rank_.size()); }
  const std::vector<MeasuredShard>& measured() const { return measured_; }
  const ShardLoad& load(int routing, int ep_rank) const {
    return loads_[static_cast<std::size_t>(routing)][static_cast<std::size_t>(ep_rank)];
  }

 private:
  struct FfnAt {
    std::int64_t rows = 0;
    StageSpan span;
  };
  const MeasuredShard* find(int ep_rank) const;
  StageSpan ffn_between(std::int64_t rows) const;
  StageSpan as_closest(int routing, int ep_rank, Stage stage) const;

  ShardLoads loads_;
  std::vector<std::int64_t> tokens_of_rank_;
  std::vector<MeasuredShard> measured_;
  std::vector<FfnAt> curve_;  // by rows, each once
};

}  // namespace epsweep
