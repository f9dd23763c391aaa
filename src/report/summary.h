// Times of all ranks to the numbers a report shows: slowest rank inside each iteration first,
// percentiles over iterations second.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/statistics.h"
#include "plan/limits.h"
#include "report/arrival.h"
#include "report/chain_table.h"
#include "report/pass_summary.h"
#include "report/timing_table.h"

namespace epsweep {

// Of one stage, of all stages of a layer, or of a layer among others. The sample of iteration i is
//   of a stage    (1 / layers) * sum over layers l of max over ranks r of wall[r][i][l]
//   of all        the sum of the stages' samples: what a layer takes whose ranks start every stage
//                 together
//   of a chain    max over ranks r of (end of its last layer - begin of the first that counts)
//                 / layers that count: what a layer takes whose ranks wait for nothing but rows
struct StageSummary {
  std::vector<double> samples_s;      // [iterations], in the order they were taken
  TimeSummary slowest_s;              // of the samples
  int slowest_rank = 0;               // position in the table: slowest most often; of all stages
                                      // the rank whose own stages add up to most
  double slowest_rank_share = 0;      // of the (iteration, layer)s, or iterations, in which it was
  double fastest_rank_p50_s = 0;      // the same samples with min over ranks, p50
  double slowest_rank_cpu_p50_s = 0;  // CPU time of the rank that was slowest, p50; of all stages
                                      // without the exchanges, where MPI polls; 0 of a chain
  double first_sample_s = 0;          // of iteration 0: a spike there means too little warm-up
  double max_of_means_s = 0;  // max over ranks of each rank's mean: what other tools print, for
                              // comparison only; never above the mean of the samples
};

// Layers back to back.
struct ChainSummary {
  StageSummary layer;
  int chain_layers = 0, fill_layers = 0;
  // p50 over chains of (later half of the layers that count / earlier half), slowest rank of each:
  // 1 where the period no longer changes along a chain; absent with fewer than two such layers.
  std::optional<double> convergence;
  std::vector<double> layer_p50_s_of_rank;  // [ranks], each rank's own
  PassSummary pass;
  std::string weights;  // what its layers find in caches: cold, revisited or warm
};

struct PointSummary {
  std::array<StageSummary, kNumStages> stages;                      // ranks start each together
  std::array<std::optional<ExchangeSummary>, kNumStages> exchange;  // of those that are one
  StageSummary all_stages;
  PassSummary pass;
  std::vector<double> all_stages_p50_s_of_rank;  // [ranks], each rank's own p50 of their sum
  std::vector<double> ffn_p50_s_of_rank;         // [ranks], expert_ffn
  double order_bound_s = 0;                      // of the rows, see TableRows
  std::optional<ChainSummary> chain;             // absent where only stages were timed

  // Of a layer among others.
  std::optional<double> period_p50_s() const { return period_s(Percentile::p50); }
  std::optional<double> period_s(Percentile percentile) const;
};

PointSummary summarize(const TimingTable& table, const TableRows& rows,
                       PassFactsOfRanks facts = {});
ChainSummary summarize_chain(const ChainTable& table, PassFactsOfRanks facts = {});

}  // namespace epsweep
