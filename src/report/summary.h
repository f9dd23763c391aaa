// Times of all ranks to the numbers a report shows: slowest rank inside each iteration first,
// percentiles over iterations second.
#pragma once

#include <array>
#include <vector>

#include "base/statistics.h"
#include "report/timing_table.h"

namespace epsweep {

// Of one stage, or of the whole layer. The sample of iteration i is, per layer,
//   of a stage       (1 / layers) * sum over layers l of max over ranks r of wall[r][i][l]
//   of the layer     (1 / layers) * max over ranks r of (end of the last layer - begin of the
//   first)
// The two differ: a rank that is late in one layer may catch up in the next.
struct StageSummary {
  TimeSummary slowest_s;              // of the samples
  int slowest_rank = 0;               // position in the table: slowest most often
  double slowest_rank_share = 0;      // of the (iteration, layer)s, or iterations, in which it was
  double fastest_rank_p50_s = 0;      // the same samples with min over ranks, p50
  double slowest_rank_cpu_p50_s = 0;  // CPU time of the rank that was slowest, p50; of the layer
                                      // without the exchange stages, where MPI polls
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
