// Launches with known costs, and what the report makes of them.
#pragma once

#include <vector>

#include "report/summary.h"
#include "sim/simulated_passes.h"

namespace epsweep::testing {

// As a report can show them: a whole number of ticks.
inline double us(double value) {
  return seconds_of(ticks_of(value * 1e-6));
}

// Groups of `ep_size` neighbouring ranks; all ranks alike, another cost for each stage:
// router 5, count_exchange 13, permute 4, dispatch 30, expert_ffn 200, combine 40, unpermute 6 us.
inline DeclaredTimes even_launch(int num_ranks, int ep_size, int num_layers = 1) {
  constexpr double kUs[kNumStages] = {5, 13, 4, 30, 200, 40, 6};
  DeclaredTimes times;
  times.num_layers = times.num_routings = num_layers;
  for (int rank = 0; rank < num_ranks; ++rank) {
    times.world_rank_of_row.push_back(rank);
    times.group_of_row.push_back(rank / ep_size);
  }
  for (int i = 0; i < num_layers * num_ranks; ++i) {
    for (const double stage_us : kUs) times.own_s.push_back(stage_us * 1e-6);
  }
  return times;
}

inline SimConditions with_faults(const DeclaredTimes& times, const std::vector<Fault>& faults) {
  SimConditions conditions;
  for (const int rank : times.world_rank_of_row) {
    std::vector<Fault>& own = conditions.faults_of_row.emplace_back();
    for (const Fault& fault : faults) {
      if (fault.rank == rank) own.push_back(fault);
    }
  }
  return conditions;
}

inline TableRows rows_of(const DeclaredTimes& times) {
  return {.group_of_row = times.group_of_row, .order_bound_s = 0};
}

// Both passes, summarised as the program does.
inline PointSummary simulated(const DeclaredTimes& times, const SimConditions& conditions,
                              int num_iterations) {
  PointSummary summary =
      summarize(simulate_aligned(times, conditions, num_iterations), rows_of(times));
  summary.chain = summarize_chain(simulate_chained(times, conditions, num_iterations));
  return summary;
}

inline PointSummary injected(const DeclaredTimes& times, const std::vector<std::string>& delays,
                             int num_iterations) {
  std::vector<Fault> faults;
  for (const std::string& text : delays) faults.push_back(parse_fault(text));
  return simulated(times, with_faults(times, faults), num_iterations);
}

inline const StageSummary& stage_of(const PointSummary& summary, Stage stage) {
  return summary.stages[static_cast<std::size_t>(stage)];
}
inline const ExchangeSummary& exchange_of(const PointSummary& summary, Stage stage) {
  return *summary.exchange[static_cast<std::size_t>(stage)];
}

}  // namespace epsweep::testing
