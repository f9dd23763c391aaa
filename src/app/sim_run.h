// `run --backend sim`: a whole launch in one process.
#pragma once

#include "app/commands.h"
#include "app/prediction_source.h"
#include "plan/sweep_spec.h"

namespace epsweep {

bool is_simulated(const RunCommand& command);

// Starts no MPI. Throws ConfigError.
int run_simulated(const RunCommand& command);

// The same of an experiment that was read, with the costs of `source`; null: those it declares.
int run_virtually(const RunCommand& command, SweepSpec spec, const PredictionSource* source);

}  // namespace epsweep
