// Times of all ranks to the numbers a report shows: slowest rank inside each iteration first,
// percentiles over iterations second.
#pragma once

#include <array>
#include <vector>

#include "base/statistics.h"
#include "report/timing_table.h"

namespace epsweep {

// Of one stage, or of the whole layer.
//   sample of iteration i = (1 / layers) * sum over layers l of max over ranks r of wall[r][i][l]
// so a sample is per layer and the maximum is taken inside every (iteration, layer).
struct StageSummary {
  TimeSummary slowest_s;              // of the samples
  int slowest_rank = 0;               // position in the table: slowest in most (iteration, layer)s
  double slowest_rank_share = 0;      // of the (iteration, layer)s in which it was
  double fastest_rank_p50_s = 0;      // the same samples with min over ranks, p50
  double slowest_rank_cpu_p50_s = 0;  // CPU time of the rank that was slowest, p50
  double first_sample_s = 0;          // of iteration 0: a spike there means too little warm-up
  double max_of_means_s = 0;  // max over ranks of each rank's mean: what other tools print, for
                              // comparison only; never above the mean of the samples
};

struct PointSummary {
  std::array<StageSummary, kNumStages> stages;
  StageSummary layer;
  std::vector<double> layer_p50_s_of_rank;  // [ranks], each rank's own p50 over iterations
  std::vector<double> ffn_p50_s_of_rank;    // [ranks], expert_ffn
};

PointSummary summarize(const TimingTable& table);

}  // namespace epsweep
