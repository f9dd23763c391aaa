#include "costs/virtual_shards.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/statistics.h"

namespace epsweep {
namespace {

// Most rows, and most slots, that each rank has in one layer.
std::vector<ShardLoad> most_of_ranks(const ShardLoads& loads) {
  std::vector<ShardLoad> most(loads.front().size());
  for (const std::vector<ShardLoad>& layer : loads) {
    for (std::size_t rank = 0; rank < layer.size(); ++rank) {
      most[rank].rows = std::max(most[rank].rows, layer[rank].rows);
      most[rank].slots = std::max(most[rank].slots, layer[rank].slots);
    }
  }
  return most;
}

// `count` of `ranks`, the first and the last among them.
std::vector<int> evenly(const std::vector<int>& ranks, int count) {
  if (count == 1) return {ranks.front()};
  std::vector<int> chosen;
  const auto last = static_cast<int>(ranks.size()) - 1;
  for (int i = 0; i < count; ++i) {
    chosen.push_back(ranks[static_cast<std::size_t>((i * last + (count - 1) / 2) / (count - 1))]);
  }
  return chosen;
}

// The mean of several, from the lowest to the highest.
StageSpan together(const std::vector<StageSpan>& spans) {
  StageSpan all{.seconds = 0, .low_s = spans.front().low_s, .high_s = spans.front().high_s};
  for (const StageSpan& span : spans) {
    all.seconds += span.seconds / static_cast<double>(spans.size());
    all.low_s = std::min(all.low_s, span.low_s);
    all.high_s = std::max(all.high_s, span.high_s);
  }
  return all;
}

}  // namespace

std::vector<int> shards_to_measure(const ShardLoads& loads, int most) {
  EPS_EXPECT(!loads.empty() && most >= 1, "no shards to choose from, or none to choose");
  const std::vector<ShardLoad> of_rank = most_of_ranks(loads);
  const auto load = [&of_rank](int rank) { return of_rank[static_cast<std::size_t>(rank)]; };
  std::vector<int> ranks(of_rank.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::stable_sort(ranks, [&load](int a, int b) {
    return load(a).rows != load(b).rows ? load(a).rows > load(b).rows
                                        : load(a).slots > load(b).slots;
  });
  if (std::ssize(ranks) <= most) return ranks;
  constexpr int kFewestWithSlots = 4;
  const int most_slots =
      *std::ranges::max_element(ranks, {}, [&load](int rank) { return load(rank).slots; });
  std::vector<int> chosen = evenly(ranks, most);
  if (most < kFewestWithSlots || std::ranges::find(chosen, most_slots) != chosen.end()) {
    return chosen;
  }
  std::set<int> kept = {most_slots};
  for (const int rank : evenly(ranks, most - 1)) kept.insert(rank);
  std::erase_if(ranks, [&kept](int rank) { return !kept.contains(rank); });
  return ranks;
}

StageSpan span_of(const std::vector<double>& seconds) {
  EPS_EXPECT(!seconds.empty(), "a stage that was timed has samples");
  StageSpan span{.seconds = nearest_rank(seconds, 0.5),
                 .low_s = std::ranges::min(seconds),
                 .high_s = std::ranges::max(seconds)};
  if (const auto interval = median_interval(seconds)) {
    span.low_s = interval->low;
    span.high_s = interval->high;
  }
  return span;
}

VirtualShards::VirtualShards(ShardLoads loads, std::vector<std::int64_t> tokens_of_rank,
                             std::vector<MeasuredShard> measured)
    : loads_(std::move(loads)),
      tokens_of_rank_(std::move(tokens_of_rank)),
      measured_(std::move(measured)) {
  EPS_EXPECT(!measured_.empty(), "no shard was measured");
  std::map<std::int64_t, std::vector<StageSpan>> by_rows;
  for (const MeasuredShard& shard : measured_) {
    EPS_EXPECT(shard.of_routing.size() == loads_.size(), "a shard was measured in other layers");
    for (std::size_t routing = 0; routing < loads_.size(); ++routing) {
      by_rows[loads_[routing].at(static_cast<std::size_t>(shard.ep_rank)).rows].push_back(
          shard.of_routing[routing][static_cast<std::size_t>(Stage::expert_ffn)]);
    }
  }
  for (const auto& [rows, spans] : by_rows) curve_.push_back({rows, together(spans)});
}

const MeasuredShard* VirtualShards::find(int ep_rank) const {
  const auto found = std::ranges::find(measured_, ep_rank, &MeasuredShard::ep_rank);
  return found == measured_.end() ? nullptr : &*found;
}

StageSpan VirtualShards::ffn_between(std::int64_t rows) const {
  if (rows == 0) return {};
  const auto more = std::ranges::lower_bound(curve_, rows, {}, &FfnAt::rows);
  if (more == curve_.end()) {
    const FfnAt& last = curve_.back();
    const double times =
        static_cast<double>(rows) / static_cast<double>(std::max<std::int64_t>(last.rows, 1));
    return {last.span.seconds * times, last.span.low_s, last.span.high_s * times};
  }
  if (more->rows == rows || more == curve_.begin()) return more->span;
  const auto fewer = std::prev(more);
  const double share =
      static_cast<double>(rows - fewer->rows) / static_cast<double>(more->rows - fewer->rows);
  StageSpan span = together({fewer->span, more->span});
  span.seconds = fewer->span.seconds + share * (more->span.seconds - fewer->span.seconds);
  return span;
}

StageSpan VirtualShards::as_closest(int routing, int ep_rank, Stage stage) const {
  const auto distance = [this, ep_rank](const MeasuredShard& shard) {
    return std::abs(tokens_of_rank_[static_cast<std::size_t>(shard.ep_rank)] -
                    tokens_of_rank_[static_cast<std::size_t>(ep_rank)]);
  };
  std::int64_t closest = distance(measured_.front());
  for (const MeasuredShard& shard : measured_) closest = std::min(closest, distance(shard));
  std::vector<StageSpan> spans;
  for (const MeasuredShard& shard : measured_) {
    if (distance(shard) > closest) continue;
    spans.push_back(
        shard.of_routing[static_cast<std::size_t>(routing)][static_cast<std::size_t>(stage)]);
  }
  return together(spans);
}

StageSpan VirtualShards::at(int routing, int ep_rank, Stage stage) const {
  EPS_EXPECT(is_own_stage(stage), "exchanges are not measured without the other ranks");
  if (const MeasuredShard* shard = find(ep_rank)) {
    return shard->of_routing[static_cast<std::size_t>(routing)][static_cast<std::size_t>(stage)];
  }
  if (stage == Stage::expert_ffn) return ffn_between(load(routing, ep_rank).rows);
  return as_closest(routing, ep_rank, stage);
}

}  // namespace epsweep
