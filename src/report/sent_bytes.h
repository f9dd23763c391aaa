// Which of the counted copies a point really sends.
#pragma once

#include <string>

#include "base/json.h"
#include "costs/point_workload.h"
#include "plan/sweep_point.h"

namespace epsweep {

// Adds sent_copies, sent_bytes, metadata_bytes and padding_bytes to `bytes` ("dispatch",
// "combine"): letter A with exchange unit `assignment`, letter B with `rank`, self copies included.
// Beside them capacity_rows, and row_counts: where the host has row counts from.
void put_sent_bytes(const SweepPoint& point, const PointWorkload& work, Json& bytes);
std::string sent_bytes_formula();

}  // namespace epsweep
