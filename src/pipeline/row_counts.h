// What a rank knows after the exchange of counts, for every exchange unit.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/rank_work.h"

namespace epsweep {

// Rows by assignment, so one per (token, chosen expert). Sized once, filled in every layer.
struct RowCounts {
  explicit RowCounts(const RankWork& work);

  std::vector<std::int64_t> send_per_slot;    // [num_slots]
  std::vector<std::int64_t> recv_per_slot;    // [ep_size][own slots]
  std::vector<std::int64_t> send_rows;        // [ep_size]
  std::vector<std::int64_t> recv_rows;        // [ep_size]
  std::vector<std::int64_t> rows_per_expert;  // [own slots]
  std::int64_t num_recv_rows = 0;
  std::vector<std::int32_t> slot_of_assignment;  // [own tokens * top_k], of assign() alone

  // On the host: slots of the layer's assignments, and send_per_slot from them.
  void assign(const RankWork& work, int routing);
  // Everything as planned: where the exchanged counts do not come to the host.
  void assume(const DispatchPlan& plan);
  // Everything else from the counts per slot. Throws RunError for more rows than the plan has.
  void sum(const RankWork& work);
  bool match(const DispatchPlan& plan) const;
};

}  // namespace epsweep
