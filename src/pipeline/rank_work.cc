#include "pipeline/rank_work.h"

#include <algorithm>

#include "device/transport.h"
#include "workload/pair_capacity.h"
#include "workload/placement_traces.h"

namespace epsweep {
namespace {

bool has_fixed_capacity(const SweepPoint& point) {
  const TransportCatalog& transports = TransportCatalog::instance();
  return transports.contains(point.transport) &&
         transports.at(point.transport).capacity == Capacity::fixed;
}

}  // namespace

std::int64_t RankWork::max_recv_rows() const {
  std::int64_t rows = 0;
  for (const DispatchPlan& layer : dispatch) rows = std::max(rows, layer.num_recv_rows());
  return rows;
}

std::int64_t RankWork::max_sent_copies() const {
  std::int64_t copies = 0;
  for (const RankDispatch& layer : rank_dispatch)
    copies = std::max(copies, layer.num_sent_copies());
  return copies;
}

std::int64_t RankWork::max_recv_copies() const {
  std::int64_t copies = 0;
  for (const RankDispatch& layer : rank_dispatch)
    copies = std::max(copies, layer.num_recv_copies());
  return copies;
}

std::vector<std::int64_t> covering_tokens(const Trace& trace, const Placement& placement) {
  std::vector<bool> seen(placement.expert_of_slot.size());
  std::vector<std::int64_t> tokens;
  // Tokens that add many experts first: half as many tokens as in one pass.
  for (int wanted = trace.top_k; wanted >= 1; wanted /= 2) {
    for (std::int64_t token = 0; token < trace.num_tokens; ++token) {
      const auto slot_of = [&placement, token](std::int32_t expert) {
        return static_cast<std::size_t>(placement.slot_of(expert, token));
      };
      const auto experts = trace.of_token(token);
      const auto num_new = std::ranges::count_if(
          experts, [&](std::int32_t expert) { return !seen[slot_of(expert)]; });
      if (num_new < wanted) continue;
      for (const std::int32_t expert : experts) seen[slot_of(expert)] = true;
      tokens.push_back(token);
    }
  }
  std::ranges::sort(tokens);
  return tokens;
}

RankWork plan_rank_work(const SweepPoint& point, int ep_rank) {
  TraceCache traces(0);  // no more than one at a time
  return plan_rank_work(point, ep_rank, traces);
}

RankWork plan_rank_work(const SweepPoint& point, int ep_rank, TraceCache& traces) {
  RankWork work;
  work.point = point;
  work.ep_rank = ep_rank;
  work.tokens_of_rank = token_ranges(point);
  const bool fixed_capacity = has_fixed_capacity(point);
  const TokenRange own = work.own_tokens();
  for (int routing = 0; routing < point.num_routings(); ++routing) {
    const int layer = point.layer_of(routing);
    work.placements.push_back(routing < point.layers
                                  ? place_experts(point, layer, rows_to_fit(point, layer, traces))
                                  : work.placements[static_cast<std::size_t>(layer)]);
    work.traces.push_back(traces.of(at_step_of(point, routing), layer));
    const Trace& trace = work.traces.back();
    work.dispatch.push_back(
        plan_dispatch(trace, work.placements.back(), work.tokens_of_rank, ep_rank));
    if (point.exchange_unit == ExchangeUnit::rank) {
      work.rank_dispatch.push_back(
          plan_rank_dispatch(trace, work.placements.back(), work.tokens_of_rank, ep_rank));
    }
    if (fixed_capacity) {
      work.most_pair_rows = std::max(
          work.most_pair_rows, most_pair_rows(trace, work.placements.back(), work.tokens_of_rank));
    }
    std::vector<std::int64_t> tokens = covering_tokens(trace, work.placements.back());
    std::erase_if(tokens, [own](std::int64_t t) { return t < own.begin || t >= own.end; });
    work.check_tokens.push_back(std::move(tokens));
  }
  if (fixed_capacity) work.capacity_rows = pair_capacity(point, work.most_pair_rows);
  for (const std::vector<int>& experts : work.placements.front().experts_of_rank) {
    work.slots_of_rank.push_back(static_cast<int>(experts.size()));
  }
  return work;
}

}  // namespace epsweep
