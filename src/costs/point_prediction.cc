#include "costs/point_prediction.h"

#include <algorithm>
#include <map>
#include <vector>

#include "costs/roofline.h"

namespace epsweep {
namespace {

struct BusiestBytes {
  double sum = 0;  // over layers
  std::string letter;
};

double sum_of(const std::vector<std::int64_t>& layers) {
  double sum = 0;
  for (const std::int64_t value : layers) sum += static_cast<double>(value);
  return sum;
}

// Rows only.
BusiestBytes busiest_bytes(const SweepPoint& point, const PointWorkload& workload) {
  const auto row_bytes = static_cast<double>(workload.traffic.row_bytes);
  if (workload.capacity_rows > 0) {
    const auto rows = static_cast<double>((point.ep_size - 1) * workload.capacity_rows);
    return {rows * point.num_routings() * row_bytes, "padded"};
  }
  if (point.exchange_unit == ExchangeUnit::assignment) {
    return {sum_of(workload.busiest_a_rows) * row_bytes, "A"};
  }
  return {sum_of(workload.busiest_d_copies) * row_bytes, "D"};
}

std::optional<PredictedExchange> predict_exchange(const ExchangeLine& line, const SweepPoint& point,
                                                  const BusiestBytes& bytes) {
  if (!(bytes.sum > 0)) return std::nullopt;
  const double of_layer = bytes.sum / point.num_routings();
  return PredictedExchange{.alpha_s = line.alpha_s,
                           .bytes_s = of_layer / line.beta_bytes_per_s,
                           .bytes = of_layer,
                           .letter = bytes.letter};
}

std::optional<PredictedFfn> predict_ffn(const PointWorkload& workload, const GroupLayout& layout,
                                        const std::vector<RankCeilings>& ceilings) {
  const bool all_known = std::ranges::all_of(ceilings, [](const RankCeilings& rank) {
    return rank.flop_per_s.value_or(0) > 0 && rank.read_bytes_per_s.value_or(0) > 0;
  });
  if (!all_known || workload.ffn_of_routing.empty()) return std::nullopt;
  PredictedFfn sum;
  std::map<int, int> times_slowest;
  for (const std::vector<FfnWork>& of_rank : workload.ffn_of_routing) {
    FfnTimes slowest;
    int slowest_rank = -1;
    std::size_t row = 0;
    for (std::size_t world_rank = 0; world_rank < layout.ep_rank_of_rank.size(); ++world_rank) {
      const int ep_rank = layout.ep_rank_of_rank[world_rank];
      if (ep_rank < 0) continue;
      const RankCeilings& own = ceilings.at(row);
      const FfnTimes ffn = ffn_times(of_rank.at(static_cast<std::size_t>(ep_rank)),
                                     {*own.flop_per_s, *own.read_bytes_per_s});
      ++row;
      if (slowest_rank >= 0 && ffn.seconds() <= slowest.seconds()) continue;
      slowest = ffn;
      slowest_rank = static_cast<int>(world_rank);
    }
    sum.seconds += slowest.seconds();
    sum.weight_s += slowest.weight_s;
    sum.compute_s += slowest.compute_s;
    ++times_slowest[slowest_rank];
  }
  const auto layers = static_cast<double>(workload.ffn_of_routing.size());
  const auto most =
      std::ranges::max_element(times_slowest, {}, [](const auto& entry) { return entry.second; });
  return PredictedFfn{.seconds = sum.seconds / layers,
                      .weight_s = sum.weight_s / layers,
                      .compute_s = sum.compute_s / layers,
                      .world_rank = most->first};
}

}  // namespace

PointPrediction predict_point(const SweepPoint& point, const PointWorkload& workload,
                              const GroupLayout& layout, const PointCeilings& ceilings) {
  PointPrediction prediction;
  prediction.ffn = predict_ffn(workload, layout, ceilings.ranks);
  if (!ceilings.exchange || workload.traffic.d_copies == 0) return prediction;
  const BusiestBytes rows = busiest_bytes(point, workload);
  prediction.combine = predict_exchange(*ceilings.exchange, point, rows);
  BusiestBytes with_metadata = rows;
  if (workload.metadata_bytes > 0 && workload.traffic.b_copies > 0) {
    with_metadata.sum += sum_of(workload.busiest_d_copies) *
                         static_cast<double>(workload.metadata_bytes) /
                         static_cast<double>(workload.traffic.b_copies);
  }
  prediction.dispatch = predict_exchange(*ceilings.exchange, point, with_metadata);
  return prediction;
}

}  // namespace epsweep
