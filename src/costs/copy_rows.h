// Copies of token rows and what travels beside them, for exchange unit `rank`.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {

// Letter B: one per distinct destination rank, own rank included.
struct LayerCopies {
  std::int64_t max_sent = 0, max_received = 0;  // of the rank that sends, and receives, most
  // Slots and weights behind the copies of all pairs of ranks, padding included.
  std::int64_t metadata_bytes = 0;
};

// Of one layer; row_bytes is the payload of a copy.
LayerCopies count_copies(const Trace& trace, const Placement& placement,
                         const std::vector<TokenRange>& tokens_of_rank, std::int64_t row_bytes);

// What the buffers of a rank must hold; nothing with exchange unit `assignment`.
struct MaxCopies {
  std::int64_t sent = 0, received = 0;
};

}  // namespace epsweep
