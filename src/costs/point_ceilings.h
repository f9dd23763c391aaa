// The ceilings that hold for the ranks of one point.
#pragma once

#include <optional>
#include <vector>

#include "costs/exchange_fit.h"

namespace epsweep {

struct RankCeilings {
  // Of this rank while all ranks of the point measured. Absent where nothing could be measured.
  std::optional<double> flop_per_s;  // of the point's dtype
  std::optional<double> read_bytes_per_s;
  // Of all the ranks that share its device (for CPUs its host) together. While its neighbours wait
  // a rank may have more than its own share of these, but never more than all of it.
  std::optional<double> shared_flop_per_s, shared_read_bytes_per_s;
  bool cached = false;  // too little was streamed to leave the caches out
};

struct PointCeilings {
  std::vector<RankCeilings> ranks;       // of groups, in world order
  std::optional<ExchangeLine> exchange;  // of the point's layout and transport
};

}  // namespace epsweep
