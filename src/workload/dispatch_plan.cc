#include "workload/dispatch_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace epsweep {
namespace {

void plan_send(const Trace& trace, const Placement& placement, DispatchPlan& plan) {
  const auto own = std::span(trace.experts)
                       .subspan(static_cast<std::size_t>(plan.tokens.begin * plan.top_k),
                                static_cast<std::size_t>(plan.num_assignments()));
  plan.expert_of_assignment.assign(own.begin(), own.end());
  plan.send_rows_per_slot.assign(placement.expert_of_slot.size(), 0);
  std::vector<std::int32_t> slots(own.size());
  assign_slots(placement.slot_table(), plan.expert_of_assignment, plan.tokens.begin, plan.top_k, slots);
  count_slots(slots, plan.send_rows_per_slot);
  auto slot = plan.send_rows_per_slot.begin();
  for (const std::vector<int>& experts : placement.experts_of_rank) {
    const auto end = slot + static_cast<std::ptrdiff_t>(experts.size());
    plan.send_rows.push_back(std::accumulate(slot, end, std::int64_t{0}));
    slot = end;
  }
}

void plan_receive(const Trace& trace, const Placement& placement,
                  const std::vector<TokenRange>& tokens_of_rank, int ep_rank, DispatchPlan& plan) {
  const auto num_local = static_cast<std::size_t>(plan.num_local_experts);
  const int first = placement.first_slot_of_rank[static_cast<std::size_t>(ep_rank)];
  const int end = first + plan.num_local_experts;
  plan.recv_rows_per_slot.assign(tokens_of_rank.size() * num_local, 0);
  plan.recv_rows.assign(tokens_of_rank.size(), 0);
  plan.rows_per_expert.assign(num_local, 0);
  for (std::size_t source = 0; source < tokens_of_rank.size(); ++source) {
    const TokenRange tokens = tokens_of_rank[source];
    for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
      for (const std::int32_t expert : trace.of_token(token)) {
        const std::int32_t slot = placement.slot_of(expert, token);
        if (slot < first || slot >= end) continue;
        const auto local = static_cast<std::size_t>(slot - first);
        ++plan.recv_rows_per_slot[source * num_local + local];
        ++plan.recv_rows[source];
        ++plan.rows_per_expert[local];
      }
    }
  }
}

}  // namespace

DispatchPlan plan_dispatch(const Trace& trace, const Placement& placement,
                           const std::vector<TokenRange>& tokens_of_rank, int ep_rank) {
  EPS_EXPECT(ep_rank >= 0 && ep_rank < placement.ep_size, "no such EP rank");
  EPS_EXPECT(tokens_of_rank.size() == static_cast<std::size_t>(placement.ep_size),
             "token ranges and placement are of different EP sizes");
  EPS_EXPECT(tokens_of_rank.back().end == trace.num_tokens, "token ranges miss the trace");
  EPS_EXPECT(placement.num_experts == trace.num_experts,
             "placement and trace are of different models");
  EPS_EXPECT(trace.experts.size() <= std::numeric_limits<std::int32_t>::max(),
             "more assignments than 32-bit row numbers reach");
  const auto rank = static_cast<std::size_t>(ep_rank);
  DispatchPlan plan;
  plan.ep_size = placement.ep_size;
  plan.top_k = trace.top_k;
  plan.num_local_experts = static_cast<int>(placement.experts_of_rank[rank].size());
  plan.tokens = tokens_of_rank[rank];
  plan_send(trace, placement, plan);
  plan_receive(trace, placement, tokens_of_rank, ep_rank, plan);
  plan.expert_order.resize(static_cast<std::size_t>(
      std::accumulate(plan.recv_rows.begin(), plan.recv_rows.end(), std::int64_t{0})));
  order_by_expert(plan.recv_rows_per_slot, plan.ep_size, plan.num_local_experts, plan.expert_order);
  return plan;
}

}  // namespace epsweep
