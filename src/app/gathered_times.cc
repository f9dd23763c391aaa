#include "app/gathered_times.h"

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "report/point_record.h"
#include "report/record_layout.h"

namespace epsweep {
namespace {

const RankOutcome* measured_outcome(const RankPoint& rank_point) {
  return rank_point.outcome && rank_point.outcome->measured ? &*rank_point.outcome : nullptr;
}

std::vector<double> flat_stages(const RankPoint& rank_point) {
  std::vector<double> flat;
  const RankOutcome* outcome = measured_outcome(rank_point);
  if (outcome == nullptr) return flat;
  const RankClock& clock = rank_point.clock.reads;
  flat.reserve(outcome->aligned.times.size() * kNumMeasures);
  for (const StageTimes& times : outcome->aligned.times) {
    flat.insert(flat.end(), {clock.at(times.begin_s), clock.at(times.end_s), times.cpu_s});
  }
  return flat;
}

std::vector<double> flat_chains(const RankPoint& rank_point) {
  std::vector<double> flat;
  const RankOutcome* outcome = measured_outcome(rank_point);
  if (outcome == nullptr) return flat;
  const RankClock& clock = rank_point.clock.reads;
  flat.reserve(outcome->chained.times.size() * 2);
  for (const LayerTimes& times : outcome->chained.times) {
    flat.insert(flat.end(), {clock.at(times.begin_s), clock.at(times.end_s)});
  }
  return flat;
}

// [aligned iterations, then chains]
std::vector<double> disturbed(const RankPoint& rank_point) {
  std::vector<double> flat;
  const RankOutcome* outcome = measured_outcome(rank_point);
  if (outcome == nullptr) return flat;
  for (const PassFacts* facts : {&outcome->aligned.facts, &outcome->chained.facts}) {
    for (const Disturbance& one : facts->disturbed) flat.push_back(one.any() ? 1 : 0);
  }
  return flat;
}

// One value on a rank that measured.
std::vector<double> mark_bound(const RankPoint& rank_point) {
  const RankOutcome* outcome = measured_outcome(rank_point);
  if (outcome == nullptr) return {};
  return {outcome->aligned.facts.mark_bound_s};
}

// Those facts are the same on all ranks but for what disturbed them.
PassFactsOfRanks facts_of(const PassFacts& own, std::span<const double> disturbed,
                          std::size_t begin, std::size_t stride) {
  PassFactsOfRanks facts;
  if (own.stop) facts.stop = kStopReasonNames[static_cast<std::size_t>(*own.stop)];
  facts.precision = own.precision;
  facts.disturbed.assign(static_cast<std::size_t>(own.num_iterations), 0);
  for (std::size_t rank = 0; rank < disturbed.size(); rank += stride) {
    for (std::size_t i = 0; i < facts.disturbed.size(); ++i) {
      facts.disturbed[i] += disturbed[rank + begin + i];
    }
  }
  return facts;
}

void count_from(double epoch_s, std::vector<double>& values, std::size_t stride) {
  for (std::size_t i = 0; i < values.size(); i += stride) {
    values[i] -= epoch_s;
    values[i + 1] -= epoch_s;
  }
}

// Of two ranks both may be off.
double two_worst(std::vector<double> bounds_s) {
  std::ranges::sort(bounds_s, std::greater());
  return bounds_s.size() < 2 ? 0 : bounds_s[0] + bounds_s[1];
}

}  // namespace

RawTimes gather_times(const Comm& world, const RankPoint& rank_point) {
  const auto gather = [&world](const std::vector<double>& own) {
    return world.gather(std::span<const double>(own), 0);
  };
  RawTimes raw;
  raw.stages = gather(flat_stages(rank_point));
  raw.chains = gather(flat_chains(rank_point));
  raw.disturbed = gather(disturbed(rank_point));
  raw.mark_bounds_s = gather(mark_bound(rank_point));
  const bool own = !rank_point.work || measured_outcome(rank_point) != nullptr;
  raw.complete = world.all_min(own ? 1 : 0) == 1;
  return raw;
}

std::optional<GatheredTimes> assemble_times(const RankPoint& rank_point, RawTimes raw,
                                            const std::vector<AlignedClock>& clocks) {
  if (!raw.complete) return std::nullopt;
  const RankOutcome& own = *measured_outcome(rank_point);
  const PassFacts &aligned = own.aligned.facts, &chained = own.chained.facts;
  const auto num_rows = static_cast<int>(active_ranks(rank_point.layout).size());
  const auto num_aligned = static_cast<std::size_t>(aligned.num_iterations);
  const std::size_t stride = num_aligned + static_cast<std::size_t>(chained.num_iterations);
  put_on_common_axis(clocks, kNumMeasures, raw.stages);
  put_on_common_axis(clocks, 2, raw.chains);
  const double epoch_s = raw.stages.front();
  count_from(epoch_s, raw.stages, kNumMeasures);
  count_from(epoch_s, raw.chains, 2);
  TableRows rows = rows_of_layout(rank_point.layout);
  rows.order_bound_s = order_bound_s(clocks) + two_worst(raw.mark_bounds_s);
  return GatheredTimes{
      .stages = {num_rows, aligned.num_iterations, rank_point.work->point.layers,
                 std::move(raw.stages)},
      .chains = {num_rows, chained.num_iterations, own.chained.chain_layers, std::move(raw.chains)},
      .rows = std::move(rows),
      .aligned = facts_of(aligned, raw.disturbed, 0, stride),
      .chained = facts_of(chained, raw.disturbed, num_aligned, stride)};
}

PointSummary summarize(const GatheredTimes& times, const std::string& chain_weights) {
  PointSummary summary = summarize(times.stages, times.rows, times.aligned);
  summary.chain = summarize_chain(times.chains, times.chained);
  summary.chain->weights = chain_weights;
  return summary;
}

}  // namespace epsweep
