// The two timing passes of a point (pipeline/timed_passes.h) on a virtual clock, for all ranks at
// once. Pure: the same inputs give the same tables, to the last bit.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rank_clock.h"
#include "faults/faults.h"
#include "report/chain_table.h"
#include "report/timing_table.h"
#include "sim/declared_times.h"
#include "sim/sim_noise.h"
#include "sim/virtual_clock.h"

namespace epsweep {

// What a run meets beside its declared times.
struct SimConditions {
  SimCosts::Noise noise;
  std::uint64_t point_key = 0;                    // see RankNoise
  std::vector<std::vector<Fault>> faults_of_row;  // delays only; empty: none anywhere
  // What marks are read from: truth is the host's clock, 0 at the begin of a pass. Empty: all true.
  std::vector<RankClock> clock_of_row;
};

// A stage between ranks: they enter at a[r], and nothing moves before the last of the EP group has
// come, so they leave at b[r] = max over the group of a + own[r]. Hence transfer = max b - max a is
// the largest own time, and wait[r] = max a - a[r] what others cost. A delay `before` a stage
// precedes its mark; one `inside` an exchange keeps the others past their marks too, as on a real
// machine.
//
// All ranks of all groups begin every stage together.
TimingTable simulate_aligned(const DeclaredTimes& times, const SimConditions& conditions,
                             int num_iterations);
// All ranks begin a chain together; from there on a rank enters a stage when it has left the one
// before.
ChainTable simulate_chained(const DeclaredTimes& times, const SimConditions& conditions,
                            int num_chains);

}  // namespace epsweep
