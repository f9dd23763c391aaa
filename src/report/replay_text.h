// What people read of replayed files.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/replay_file.h"

namespace epsweep {

// `records`: of all points of the file, in its order.
std::string replay_text(const ReplayFile& file, const std::vector<Json>& records);

}  // namespace epsweep
