// How long bare exchanges of a group take, by size.
#pragma once

#include <cstdint>
#include <vector>

#include "ceilings/ranks_together.h"
#include "device/backend.h"
#include "device/transport.h"

namespace epsweep {

struct ExchangeRung {
  std::int64_t bytes_per_peer = 0;  // from every rank to every other one; none to itself
  std::vector<double> seconds;      // of this rank, one for each repetition
};

struct ExchangeTimes {
  std::vector<ExchangeRung> ladder;
  std::vector<double> count_seconds;  // exchange_counts() of one slot for each rank, and wait
};

struct ExchangePlace {
  int ep_size = 1, ep_rank = 0;
  Capacity capacity = Capacity::exact;
};

// 64 B to 4 MiB to every peer in steps of four, nine repetitions after two that do not count, as
// long as the next rung promises to stay within `budget_s` and buffers within a sixteenth of the
// rank's memory each. Nothing in a group of one. Collective over the ranks; all groups of a layout
// exchange at the same time, as they do in points.
ExchangeTimes probe_exchange(Backend& backend, Transport& transport, const ExchangePlace& place,
                             double budget_s, const RanksTogether& ranks);

}  // namespace epsweep
