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

void add(DomainTraffic& total, const DomainTraffic& layer) {
  total.c_copies += layer.c_copies;
  total.e_copies += layer.e_copies;
  total.a_intra_copies += layer.a_intra_copies;
  total.b_intra_copies += layer.b_intra_copies;
}

void add(Traffic& total, const Traffic& layer) {
  total.row_bytes = layer.row_bytes;
  total.a_copies += layer.a_copies;
  total.a_self_copies += layer.a_self_copies;
  total.b_copies += layer.b_copies;
  total.b_self_copies += layer.b_self_copies;
  total.d_copies += layer.d_copies;
  if (layer.domains.has_value()) {
    if (!total.domains.has_value()) total.domains.emplace();
    add(*total.domains, *layer.domains);
  }
  total.max_remote_rows_sent = std::max(total.max_remote_rows_sent, layer.max_remote_rows_sent);
  total.max_remote_rows_received =
      std::max(total.max_remote_rows_received, layer.max_remote_rows_received);
  total.max_d_copies_sent = std::max(total.max_d_copies_sent, layer.max_d_copies_sent);
  total.max_d_copies_received = std::max(total.max_d_copies_received, layer.max_d_copies_received);
}

std::vector<std::int64_t> rows_of_rank(const std::vector<std::int64_t>& rows_per_slot,
                                       const Placement& placement, std::size_t rank) {
  return {rows_per_slot.begin() + placement.first_slot_of_rank[rank],
          rows_per_slot.begin() + placement.first_slot_of_rank[rank + 1]};
}

}  // namespace

std::optional<KnownPlaces> places_from_topology(const SweepPoint& point) {
  std::optional<GroupPlaces> places = declared_places(point);
  if (!places.has_value()) return std::nullopt;
  return KnownPlaces{std::move(*places), PlacesFrom::declared};
}

PointWorkloadSum::PointWorkloadSum(const SweepPoint& point, std::optional<KnownPlaces> places)
    : point_(point), tokens_of_rank_(token_ranges(point)) {
  sum_.ffn_of_rank.resize(static_cast<std::size_t>(point.ep_size));
  sum_.places = std::move(places);
  sum_.placement_fitted_on = placement_fitted_on(point);
}

void PointWorkloadSum::add_layer(const Trace& trace, const Placement& placement) {
  const std::int64_t row_bytes = point_.model.expert_io_dim * bytes_of(point_.dtype);
  const LayerCounts counts = count_layer(trace, placement, tokens_of_rank_, row_bytes,
                                         sum_.places ? &sum_.places->group : nullptr);
  const std::vector<std::int64_t>& rows = counts.rows_per_slot;
  sum_.rows_per_expert.push_back(rows_per_expert(trace));
  sum_.rows_per_rank.push_back(sum_by_rank(placement, rows));
  max_recv_rows_ = std::max(max_recv_rows_, std::ranges::max(sum_.rows_per_rank.back()));
  routing_.add(routing_checksum(trace));
  add(sum_.traffic, counts.traffic);
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
  return std::move(sum_);
}

}  // namespace epsweep
