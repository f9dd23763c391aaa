// The times of all ranks, brought together on rank 0.
#pragma once

#include <optional>

#include "app/rank_engine.h"
#include "report/arrival.h"
#include "report/chain_table.h"
#include "report/pass_summary.h"
#include "report/summary.h"
#include "report/timing_table.h"

namespace epsweep {

struct GatheredTimes {
  // Rows: active_ranks(). Seconds from the first row's first begin.
  TimingTable stages;
  ChainTable chains;
  TableRows rows;
  PassFactsOfRanks aligned, chained;
};

// Collective over the world; on rank 0 absent unless every working rank measured.
std::optional<GatheredTimes> gather_times(const Comm& world, const RankPoint& rank_point);

PointSummary summarize(const GatheredTimes& times, const std::string& chain_weights);

}  // namespace epsweep
