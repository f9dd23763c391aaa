// Runs the points of a plan on all ranks of a launch, one after the other, and keeps the records.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/gathered_point.h"
#include "app/rank_engine.h"
#include "app/sweep_walk.h"
#include "report/progress.h"
#include "report/result_file.h"
#include "workload/trace_cache.h"

namespace epsweep {

class Coordinator {
 public:
  // `results` is null on ranks other than 0.
  Coordinator(const Comm& world, const HostMap& hosts, const Plan& plan, RankEngine& engine,
              RunDirectory* results);

  // Collective over the world. The exit code is the same on every rank: 128 + N after signal N,
  // otherwise as ExitCode says. Records of all points are on rank 0 afterwards.
  int run();
  const std::vector<Json>& records() const { return records_; }

 private:
  // Known on rank 0 first.
  struct SharedEnd {
    PointEnd end;
    int stop_signal = 0;
  };
  SharedEnd run_point_on_all(const SweepPoint& point);
  SharedEnd measure_on_all(const SweepPoint& point, RankPoint& rank_point);
  // Of the first group: as declared, else by the hosts that ranks were found on.
  KnownPlaces places_of(const SweepPoint& point) const;
  PointWorkload workload_of(const RankWork& work);
  SharedEnd end_refused(const SweepPoint& point, const Refusal& refusal,
                        const RankPoint* rank_point);
  void share_end(const SweepPoint& point, SharedEnd& end);
  std::string weights_in_chains(const SweepPoint& point, const PointWorkload& workload) const;
  PointRecordInput record_input(const SweepPoint& point) const;
  // The ranks that share a device, by position among the working ones.
  std::vector<int> device_of_rank(const std::vector<int>& world_ranks) const;
  PointRecordInput measured_input(const SweepPoint& point, const RankPoint& rank_point,
                                  const GatheredPoint& gathered);
  // With the ceilings that hold at last.
  std::optional<Breakdown> breakdown_of(const GatheredTimes& times, const PointRecordInput& input);
  // Nobody is called impossible on the word of one measurement. Collective over the world.
  void doubt_ceilings(const RankPoint& rank_point, PointRecordInput& input);
  SharedEnd record_measured(PointRecordInput& input, const GatheredPoint& gathered);
  void record(const PointRecordInput& input);

  const Comm& world_;
  const HostMap& hosts_;
  RankEngine& engine_;
  RunDirectory* results_;
  std::optional<Progress> progress_;
  TraceCache traces_;  // of rank 0: those that placements are judged on
  SweepWalk walk_;
  std::vector<Json> records_;
};

// Whether the run's exit code depends on it: a bridge that does not fit is no failure.
bool counts_for_exit(const SweepPoint& point, PointState state);
// The code for a run whose points ended in these states.
ExitCode exit_code_of(const std::vector<PointState>& states);

}  // namespace epsweep
