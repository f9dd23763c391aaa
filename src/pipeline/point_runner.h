// One point on one rank: check, warm-up, timed passes, check.
#pragma once

#include <optional>
#include <vector>

#include "device/backend.h"
#include "device/transport.h"
#include "pipeline/expert_weights.h"
#include "pipeline/layer_pipeline.h"
#include "pipeline/oracle.h"
#include "pipeline/rank_work.h"
#include "pipeline/runner_hooks.h"
#include "pipeline/timed_passes.h"

namespace epsweep {

struct PhaseSeconds {
  double warm_kernels = 0, check = 0, warmup = 0, flush = 0, measured = 0;
};

// From the first to the last timed iteration.
struct LoadSample {
  double wall_s = 0;
  double own_cpu_s = 0;               // of this rank's process
  std::optional<double> host_busy_s;  // CPU seconds of everything on the host
};

struct RankOutcome {
  OracleResult check_before, check_after;
  bool measured = false;  // false if the check before failed somewhere, or a stop came first
  int stop_signal = 0;    // agreed by all ranks
  AlignedTimes aligned;
  ChainedTimes chained;
  std::vector<LayerGemmWork> gemm_work;  // [routings]
  PhaseSeconds seconds;
  LoadSample load;
  DeviceCondition condition_before, condition_after;  // around the timed iterations
  WorkCounters counters;                              // of them, the flushing in between included
};

RankOutcome run_point(const RankWork& work, Backend& backend, Transport& transport,
                      ExpertWeights& weights, const RunnerHooks& hooks);

}  // namespace epsweep
