// Everything one rank must know before it runs a point: pure, and the same inputs everywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/sweep_point.h"
#include "workload/dispatch_plan.h"
#include "workload/placement.h"
#include "workload/rank_dispatch.h"
#include "workload/trace.h"
#include "workload/trace_cache.h"

namespace epsweep {

struct RankWork {
  SweepPoint point;
  int ep_rank = 0;
  std::vector<TokenRange> tokens_of_rank;   // [ep_size]
  std::vector<int> slots_of_rank;           // [ep_size], the same in all layers
  std::vector<Placement> placements;        // [routings], those of a layer equal
  std::vector<Trace> traces;                // [routings], the whole group's routing
  std::vector<DispatchPlan> dispatch;       // [routings], this rank's part
  std::vector<RankDispatch> rank_dispatch;  // [routings] of exchange unit rank, else empty
  std::vector<std::vector<std::int64_t>> check_tokens;  // [routings], own tokens to recompute

  // Of one source and destination in any routing; and what the transport gives every such pair, 0
  // where it is one of exact capacity. See workload/pair_capacity.h.
  std::int64_t most_pair_rows = 0, capacity_rows = 0;

  TokenRange own_tokens() const { return tokens_of_rank[static_cast<std::size_t>(ep_rank)]; }
  int num_own_slots() const { return slots_of_rank[static_cast<std::size_t>(ep_rank)]; }
  const std::vector<int>& own_experts(int layer) const {
    return placements[static_cast<std::size_t>(layer)]
        .experts_of_rank[static_cast<std::size_t>(ep_rank)];
  }
  // Over the routings.
  std::int64_t max_recv_rows() const;
  // 0 unless the exchange unit is rank.
  std::int64_t max_sent_copies() const;
  std::int64_t max_recv_copies() const;
};

// Throws ConfigError where the routing does not fit the model.
RankWork plan_rank_work(const SweepPoint& point, int ep_rank);
// The same with traces that several points share, such as the one that placements are fitted to.
RankWork plan_rank_work(const SweepPoint& point, int ep_rank, TraceCache& traces);

// Tokens, ascending, whose recomputation touches every slot that has rows, so every replica of
// every expert that is used; chosen greedily.
std::vector<std::int64_t> covering_tokens(const Trace& trace, const Placement& placement);

}  // namespace epsweep
