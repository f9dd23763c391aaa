#include "pipeline/row_counts.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"

namespace epsweep {

RowCounts::RowCounts(const RankWork& work) {
  const auto num_ranks = static_cast<std::size_t>(work.point.ep_size);
  const auto num_local = static_cast<std::size_t>(work.num_own_slots());
  send_per_slot.resize(work.placements.front().expert_of_slot.size());
  recv_per_slot.resize(num_ranks * num_local);
  send_rows.resize(num_ranks);
  recv_rows.resize(num_ranks);
  rows_per_expert.resize(num_local);
  slot_of_assignment.resize(
      static_cast<std::size_t>(work.own_tokens().size() * work.point.model.top_k));
}

void RowCounts::assign(const RankWork& work, int routing) {
  const DispatchPlan& plan = work.dispatch[static_cast<std::size_t>(routing)];
  std::ranges::fill(send_per_slot, 0);
  assign_slots(work.placements[static_cast<std::size_t>(routing)].slot_table(),
               plan.expert_of_assignment, plan.tokens.begin, plan.top_k, slot_of_assignment);
  count_slots(slot_of_assignment, send_per_slot);
}

void RowCounts::assume(const DispatchPlan& plan) {
  std::ranges::copy(plan.send_rows_per_slot, send_per_slot.begin());
  std::ranges::copy(plan.recv_rows_per_slot, recv_per_slot.begin());
  std::ranges::copy(plan.send_rows, send_rows.begin());
  std::ranges::copy(plan.recv_rows, recv_rows.begin());
  std::ranges::copy(plan.rows_per_expert, rows_per_expert.begin());
  num_recv_rows = plan.num_recv_rows();
}

void RowCounts::sum(const RankWork& work) {
  const auto num_local = static_cast<std::ptrdiff_t>(rows_per_expert.size());
  auto sent = send_per_slot.begin();
  auto received = recv_per_slot.begin();
  std::ranges::fill(rows_per_expert, 0);
  for (std::size_t rank = 0; rank < send_rows.size(); ++rank) {
    send_rows[rank] = std::accumulate(sent, sent + work.slots_of_rank[rank], std::int64_t{0});
    recv_rows[rank] = std::accumulate(received, received + num_local, std::int64_t{0});
    std::transform(received, received + num_local, rows_per_expert.begin(), rows_per_expert.begin(),
                   std::plus<>());
    sent += work.slots_of_rank[rank];
    received += num_local;
  }
  num_recv_rows = std::accumulate(recv_rows.begin(), recv_rows.end(), std::int64_t{0});
  EPS_EXPECT(num_recv_rows <= work.max_recv_rows(),
             "more rows announced than the receive buffer holds");
}

bool RowCounts::match(const DispatchPlan& plan) const {
  return std::ranges::equal(recv_per_slot, plan.recv_rows_per_slot) &&
         std::ranges::equal(send_rows, plan.send_rows) &&
         std::ranges::equal(recv_rows, plan.recv_rows);
}

}  // namespace epsweep
