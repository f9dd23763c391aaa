// The arrays of times that records of a run name.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "report/chain_table.h"
#include "report/timing_table.h"

namespace epsweep {

// "DIR/points.jsonl: point 3"
std::string record_place(const std::string& dir, const Json& record);

// Of a measured record of the run in `dir`; absent where it names no file. Throw ConfigError for a
// name that leaves the directory, a file that is missing, cut off or not such an array, times that
// are not finite or run backwards, and a shape that is not the record's.
std::optional<TimingTable> stage_times_of(const std::string& dir, const Json& record);
std::optional<ChainTable> chain_times_of(const std::string& dir, const Json& record);

}  // namespace epsweep
