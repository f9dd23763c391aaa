// `run --backend sim`: a whole launch in one process.
#pragma once

#include "app/commands.h"

namespace epsweep {

bool is_simulated(const RunCommand& command);

// Starts no MPI. Throws ConfigError.
int run_simulated(const RunCommand& command);

}  // namespace epsweep
