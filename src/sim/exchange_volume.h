// What every rank of a group sends and receives in the exchanges of one layer, by the kind of link.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/sweep_point.h"
#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {

// Bytes to the rank itself, to other ranks of its domain, and to other domains.
struct LinkBytes {
  std::int64_t self = 0, intra = 0, inter = 0;
};
struct RankVolume {
  LinkBytes sent, received;
};

// [ep_size] each. With exchange unit `assignment` rows are counted by letter A; with `rank` by
// letter B, and in dispatch the slots and weights of their uses travel too
// (workload/rank_dispatch.h). Combine returns what dispatch brought, rows only. Counts are 8 bytes
// for every slot of the destination.
struct LayerVolume {
  std::vector<RankVolume> count_exchange, dispatch, combine;
};

// `domain_of_rank`: [ep_size].
LayerVolume layer_volume(const SweepPoint& point, const Trace& trace, const Placement& placement,
                         const std::vector<int>& domain_of_rank);

}  // namespace epsweep
