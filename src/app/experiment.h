// Finding and reading experiment files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace epsweep {

// The names of everything that is linked in, and what `backend` uses where an experiment names
// nothing. Throws ConfigError if there is no such backend.
Catalogs linked_catalogs(const std::string& backend);

// The folder with NAME.yaml model files: $EPSWEEP_MODELS_DIR; else `models` beside the experiment's
// folder or in it; else configs/models in a folder above the executable. Throws ConfigError.
std::string find_models_dir(const std::string& experiment_file);

// The same for configs/hardware: $EPSWEEP_HARDWARE_DIR, else `hardware` in those places; empty
// where there is none.
std::string find_hardware_dir(const std::string& experiment_file);

// Throws ConfigError: the file's own mistakes, see read_sweep_spec(), no such backend, and a
// transport or kernel that belongs to another backend.
SweepSpec load_experiment(const std::string& file, const std::vector<std::string>& overrides,
                          const std::string& backend);
// Why the point cannot run whatever the accelerator; absent if it can. Looks at this machine's
// memory, since the routing is drawn in it.
std::optional<std::string> reason_not_to_plan(const SweepPoint& point);
// Throws ConfigError if a routing of the plan cannot be made: its parameters or its file.
void check_routings(const Plan& plan);

}  // namespace epsweep
