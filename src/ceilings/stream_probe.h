// How fast a rank reads and copies memory, and starts work.
#pragma once

#include <cstdint>
#include <optional>

#include "ceilings/ranks_together.h"
#include "device/backend.h"

namespace epsweep {

// Of one rank, while all the others measured too. Rates are absent where the device has no probes
// or no memory for them.
struct StreamRates {
  std::int64_t streamed_bytes = 0;
  // Of the device or, for the CPU, of the whole host; see BackendInfo.
  std::int64_t last_level_cache_bytes = 0;
  std::optional<double> read_bytes_per_s;
  std::optional<double> copy_bytes_per_s;  // bytes read plus bytes written
  std::optional<double> launch_latency_s;  // enqueue and wait, median

  // Less than twice the cache: the rate may be the cache's.
  bool cached() const { return streamed_bytes < 2 * last_level_cache_bytes; }
};

// Streams what the device asks for (Probes::stream_bytes()), but at most an eighth of the rank's
// memory and what the system hands out in a second; two passes each after one that does not count;
// the best part of about 4 ms is the rate. Collective over the ranks.
StreamRates probe_streams(Backend& backend, const RanksTogether& ranks);

}  // namespace epsweep
