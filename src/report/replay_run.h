// The times of a stored run, computed again from its arrays.
#pragma once

#include "report/result_file.h"

namespace epsweep {

// Records of measured points with what is computed from times put over what was stored; all else
// stays, as do facts of a pass that arrays do not hold (why it stopped, which iterations were
// disturbed). A record whose stored times differ from the computed ones gets a warning.
// Throws ConfigError for arrays that are missing, damaged or of other ranks; writes nothing.
RunData replay_run(RunData run);

}  // namespace epsweep
