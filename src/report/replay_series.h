// Points of replayed files side by side: what may be compared, and what their repeats show.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/replay_file.h"

namespace epsweep {

// Throws ConfigError naming both places and the field: points of one name that are of different
// regimes (an idle entry hides what back to back pays, so neither is faster), or the same point and
// repeat twice.
void expect_comparable(const std::vector<ReplayFile>& files);

// Of replay records: where points of one name and load differ in EP size and repeat only, and any
// was repeated, a sentence for every EP size but the smallest, against that one. The value of a
// repeat is the p50 of the whole layer where the file has one, else of all its stages.
std::vector<std::string> replay_verdicts(const std::vector<Json>& records);

}  // namespace epsweep
