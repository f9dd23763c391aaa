// Clocks of simulated ranks that are wrong on purpose, and their alignment.
#pragma once

#include <vector>

#include "app/gathered_times.h"
#include "app/point_clock.h"
#include "base/rank_clock.h"
#include "faults/faults.h"
#include "plan/sweep_point.h"

namespace epsweep {

// By row; empty where no fault is about a clock. Drift starts with a pass.
std::vector<RankClock> sim_clocks(const std::vector<Fault>& faults,
                                  const std::vector<int>& world_ranks);

// What a real launch would find out by asking its first row for the time before and after a pass of
// `length_s`, over links that take their alpha in both directions: the truth, without knowing more
// than that it is right to within an alpha. A row whose clock is true shares the first row's if
// that one is true too.
std::vector<AlignedClock> align_sim_clocks(const SweepPoint& point,
                                           const std::vector<int>& world_ranks,
                                           const std::vector<RankClock>& clocks, double length_s);

TimingTable on_common_axis(const TimingTable& table, const std::vector<AlignedClock>& clocks);
ChainTable on_common_axis(const ChainTable& table, const std::vector<AlignedClock>& clocks);

}  // namespace epsweep
