// The times of all ranks, brought together on rank 0.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/point_clock.h"
#include "app/rank_engine.h"
#include "report/arrival.h"
#include "report/chain_table.h"
#include "report/pass_summary.h"
#include "report/summary.h"
#include "report/timing_table.h"

namespace epsweep {

struct GatheredTimes {
  // Rows: active_ranks(). Seconds from the first row's first begin, on the common axis: rank 0's
  // clock, other clocks moved onto it.
  TimingTable stages;
  ChainTable chains;
  TableRows rows;
  PassFactsOfRanks aligned, chained;
};

// As the ranks read their clocks, in world order; on rank 0 only.
struct RawTimes {
  std::vector<double> stages, chains;
  std::vector<double> disturbed, mark_bounds_s;
  bool complete = false;  // every working rank measured
};

// Collective over the world.
RawTimes gather_times(const Comm& world, const RankPoint& rank_point);
// On rank 0; `clocks` of the working ranks. Absent unless every one of them measured.
std::optional<GatheredTimes> assemble_times(const RankPoint& rank_point, RawTimes raw,
                                            const std::vector<AlignedClock>& clocks);

PointSummary summarize(const GatheredTimes& times, const std::string& chain_weights);

}  // namespace epsweep
