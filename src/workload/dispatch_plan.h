// What one rank sends, receives and computes for one layer, from routing and placement alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/slot_order.h"
#include "plan/sweep_point.h"
#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {

// Order of things. An assignment is (own token t, choice j), numbered t * top_k + j with t counted
// from the rank's first token. A local expert is what one of the rank's slots holds; replicas on
// one rank are several. Send order: by destination rank, then local expert there, then token.
// Receive order: by source rank, then local expert, then token. Expert order: by local expert, then
// source rank, then token; the order grouped GEMMs work in.
struct DispatchPlan {
  int ep_size = 0;
  int top_k = 0;
  int num_local_experts = 0;
  TokenRange tokens;                               // of the group's C
  std::vector<std::int32_t> expert_of_assignment;  // [own tokens * top_k]

  std::vector<std::int64_t> send_rows;  // [ep_size]
  std::vector<std::int64_t> recv_rows;  // [ep_size]
  // Rows for each (destination rank, its local expert), in send order: [num_slots].
  std::vector<std::int64_t> send_rows_per_slot;
  // Rows from each source for each local expert: [ep_size][num_local_experts].
  std::vector<std::int64_t> recv_rows_per_slot;
  std::vector<std::int64_t> rows_per_expert;  // [num_local_experts]
  // Row i in expert order is row expert_order[i] in receive order: [received rows].
  std::vector<std::int32_t> expert_order;

  std::int64_t num_assignments() const { return tokens.size() * top_k; }
  std::int64_t num_recv_rows() const { return static_cast<std::int64_t>(expert_order.size()); }
};

DispatchPlan plan_dispatch(const Trace& trace, const Placement& placement,
                           const std::vector<TokenRange>& tokens_of_rank, int ep_rank);

}  // namespace epsweep
