// Runs the points of a plan on a virtual clock: all ranks in this process, nothing is measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/gathered_times.h"
#include "app/prediction_source.h"
#include "app/sweep_walk.h"
#include "app/virtual_ranks.h"
#include "faults/faults.h"
#include "plan/plan.h"
#include "report/point_record.h"
#include "report/progress.h"
#include "report/result_file.h"
#include "sim/declared_times.h"
#include "workload/trace_cache.h"

namespace epsweep {

struct SimSettings {
  int num_ranks = 1;
  std::vector<Fault> faults;                     // delays only
  const PredictionSource* prediction = nullptr;  // whose costs points have; null: declared ones
};

// Rows, bytes and times of one point, without anything recorded.
struct SimulatedPoint {
  PointWorkload workload;
  GatheredTimes times;
  ClockReport clock;
  Distance distance;  // of predicted times
};
SimulatedPoint simulate_point(const SweepPoint& point, const GroupLayout& layout,
                              const std::vector<Fault>& faults, TraceCache& traces,
                              const PredictedCosts& predicted = {});

class SimSweep {
 public:
  SimSweep(const SimSettings& settings, const Plan& plan, RunDirectory& results);
  // The exit code, as ExitCode says, or 128 + N after signal N.
  int run();

 private:
  PointEnd run_point(const SweepPoint& point);
  PointEnd end_refused(PointRecordInput input, const Refusal& refusal);
  PointRecordInput record_input(const SweepPoint& point) const;
  VirtualPoint measure_compute(PointRecordInput& input) const;
  PointEnd simulate(PointRecordInput input);
  void record(const PointRecordInput& input);
  SimulatedPoint simulated(const PointRecordInput& input, const VirtualPoint& measured,
                           PointSummary& central, Json& prediction);

  const SimSettings& settings_;
  RunDirectory& results_;
  Progress progress_;
  TraceCache traces_;
  SweepWalk walk_;
};

}  // namespace epsweep
