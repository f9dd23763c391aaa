// `run --backend sim`: a whole launch in one process.
#pragma once

#include "app/commands.h"
#include "app/prediction_source.h"
#include "plan/plan.h"
#include "plan/sweep_spec.h"

namespace epsweep {

bool is_simulated(const RunCommand& command);

// Starts no MPI. Throws ConfigError.
int run_simulated(const RunCommand& command);

// The same of an experiment that was read, with the costs of `source`; null: those it declares.
int run_virtually(const RunCommand& command, SweepSpec spec, const PredictionSource* source);

// Its two halves. The first fills in an assumed topology; the second measures where the source has
// ranks that do.
struct SimLaunch {
  int num_ranks = 0;
  bool topology_assumed = false;
  Plan plan;
};
SimLaunch plan_launch(const RunCommand& command, SweepSpec& spec);
int run_planned(const RunCommand& command, const SweepSpec& spec, const SimLaunch& launch,
                const PredictionSource* source);

}  // namespace epsweep
