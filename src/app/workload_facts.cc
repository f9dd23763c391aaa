#include "app/workload_facts.h"

#include <algorithm>

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

}  // namespace

PointWorkload workload_facts(const RankWork& work) {
  const SweepPoint& point = work.point;
  const std::int64_t row_bytes = point.model.expert_io_dim * bytes_of(point.dtype);
  PointWorkload facts;
  facts.ffn_of_rank.resize(static_cast<std::size_t>(point.ep_size));
  for (std::size_t layer = 0; layer < work.traces.size(); ++layer) {
    const Trace& trace = work.traces[layer];
    const Placement& placement = work.placements[layer];
    const std::vector<std::int64_t> rows = rows_per_slot(placement, trace);
    facts.rows_per_expert.push_back(rows_per_expert(trace));
    facts.rows_per_rank.push_back(sum_by_rank(placement, rows));
    add(facts.traffic, count_traffic(trace, placement, work.tokens_of_rank, row_bytes));
    add(facts.ffn, ffn_work(point.model, point.dtype, rows));
    for (std::size_t rank = 0; rank < facts.ffn_of_rank.size(); ++rank) {
      add(facts.ffn_of_rank[rank],
          ffn_work(point.model, point.dtype, rows_of_rank(rows, placement, rank)));
    }
  }
  // Layers differ in which experts a rank has, not in how many.
  const Placement& placement = work.placements.front();
  facts.weight_bytes_per_rank = weight_bytes_per_rank(point.model, point.dtype, placement);
  std::int64_t most_rows = 0;
  for (const std::vector<std::int64_t>& layer : facts.rows_per_rank) {
    most_rows = std::max(most_rows, *std::ranges::max_element(layer));
  }
  facts.memory = memory_need(point, placement, most_rows);
  facts.placement_fitted_on = placement_fitted_on(point);
  facts.routing_checksum = routing_checksum(work.traces);
  return facts;
}

}  // namespace epsweep
