// The numbers of a replayed point, under the names that records of runs have for them.
#pragma once

#include "base/json.h"
#include "report/replay_file.h"

namespace epsweep {

// State `failed` (a failed check, or pairs of ranks that did not use what the point is labelled
// with) has no times. What cannot be computed is null, and `null_reasons` says why.
Json make_replay_record(const ReplayFile& file, const ReplayPoint& point);

}  // namespace epsweep
