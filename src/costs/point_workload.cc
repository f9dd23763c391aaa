#include "costs/point_workload.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace epsweep {
namespace {

void add(FfnWork& total, const FfnWork& part) {
  total.routed_rows += part.routed_rows;
  total.touched_experts += part.touched_experts;
  total.flops += part.flops;
  total.weight_bytes += part.weight_bytes;
}

void add(Traffic& total, const Traffic& layer) {
  total.row_bytes = layer.row_bytes;
  total.a_copies += layer.a_copies;
  total.a_self_copies += layer.a_self_copies;
  total.b_copies += layer.b_copies;
  total.b_self_copies += layer.b_self_copies;
  total.d_copies += layer.d_copies;
  total.max_remote_rows_sent = std::max(total.max_remote_rows_sent, layer.max_remote_rows_sent);
  total.max_remote_rows_received =
      std::max(total.max_remote_rows_received, layer.max_remote_rows_received);
}

std::vector<std::int64_t> rows_of_rank(const std::vector<std::int64_t>& rows_per_slot,
                                       const Placement& placement, std::size_t rank) {
  return {rows_per_slot.begin() + placement.first_slot_of_rank[rank],
          rows_per_slot.begin() + placement.first_slot_of_rank[rank + 1]};
}

// The layers' searches are over: their traces were drawn.
std::optional<RealisedSkew> realised_skew(const SweepPoint& point) {
  const std::optional<double> asked = asked_max_over_mean(point.routing);
  if (!asked) return std::nullopt;
  RealisedSkew skew{.asked = *asked, .param = skew_param(point)};
  for (int layer = 0; layer < point.layers; ++layer) {
    const std::optional<SolvedSkew> solved = solved_skew(point, layer);
    if (!solved) return std::nullopt;  // no tokens
    skew.values.push_back(solved->param);
    skew.max_over_mean.push_back(solved->max_over_mean);
  }
  return skew;
}

}  // namespace

PointWorkloadSum::PointWorkloadSum(const SweepPoint& point)
    : point_(point), tokens_of_rank_(token_ranges(point)) {
  sum_.ffn_of_rank.resize(static_cast<std::size_t>(point.ep_size));
  sum_.placement_fitted_on = placement_fitted_on(point);
}

void PointWorkloadSum::add_layer(const Trace& trace, const Placement& placement) {
  const std::int64_t row_bytes = point_.model.expert_io_dim * bytes_of(point_.dtype);
  const std::vector<std::int64_t> rows = rows_per_slot(placement, trace);
  sum_.rows_per_expert.push_back(rows_per_expert(trace));
  sum_.rows_per_rank.push_back(sum_by_rank(placement, rows));
  max_recv_rows_ = std::max(max_recv_rows_, std::ranges::max(sum_.rows_per_rank.back()));
  routing_.add(routing_checksum(trace));
  add(sum_.traffic, count_traffic(trace, placement, tokens_of_rank_, row_bytes));
  add(sum_.ffn, ffn_work(point_.model, point_.dtype, rows));
  for (std::size_t rank = 0; rank < sum_.ffn_of_rank.size(); ++rank) {
    add(sum_.ffn_of_rank[rank],
        ffn_work(point_.model, point_.dtype, rows_of_rank(rows, placement, rank)));
  }
  // Layers differ in which experts a rank has, not in how many.
  if (!sum_.slots_per_rank.empty()) return;
  for (const std::vector<int>& experts : placement.experts_of_rank) {
    sum_.slots_per_rank.push_back(static_cast<std::int64_t>(experts.size()));
  }
}

PointWorkload PointWorkloadSum::finish() {
  EPS_EXPECT(sum_.rows_per_rank.size() == static_cast<std::size_t>(point_.layers),
             "another number of layers than the point has");
  sum_.weight_bytes_per_rank =
      weight_bytes_per_rank(point_.model, point_.dtype, sum_.slots_per_rank);
  sum_.memory = memory_need(point_, std::ranges::max(sum_.slots_per_rank), max_recv_rows_);
  sum_.routing_checksum = routing_.value();
  sum_.realised_skew = realised_skew(point_);
  return std::move(sum_);
}

}  // namespace epsweep
