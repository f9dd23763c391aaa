// One point on one rank: check, warm-up, timed iterations, check.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "device/backend.h"
#include "device/transport.h"
#include "pipeline/expert_weights.h"
#include "pipeline/layer_pipeline.h"
#include "pipeline/oracle.h"
#include "pipeline/rank_work.h"

namespace epsweep {

// What the runner needs from outside; it never sees MPI.
struct RunnerHooks {
  // Maximum over all ranks that run the point; also how they start an iteration together.
  std::function<int(int)> all_max;
  // Nonzero if this rank wants everybody to stop (a signal's number).
  std::function<int()> stop_wish;
  // Told before anything that may take long.
  std::function<void(const std::string& phase)> enter_phase;
  // Sees a layer's output before the oracle does; injected faults may throw here.
  std::function<void()> before_oracle;
};

struct PhaseSeconds {
  double warm_kernels = 0, check = 0, warmup = 0, flush = 0, measured = 0;
};

// One value per (iteration, layer, stage).
struct StageTimes {
  double begin_s = 0, end_s = 0;  // host's monotonic clock
  double cpu_s = 0;
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
  std::vector<StageTimes> times;         // [iterations][layers][stages]
  std::vector<LayerGemmWork> gemm_work;  // [layers]
  PhaseSeconds seconds;
  LoadSample load;
  DeviceCondition condition;  // right after the last timed iteration
};

RankOutcome run_point(const RankWork& work, Backend& backend, Transport& transport,
                      ExpertWeights& weights, const RunnerHooks& hooks);

}  // namespace epsweep
