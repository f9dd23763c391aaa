// The stages of one point, one a row: who is slow, who waits, what moves.
#pragma once

#include <string>

#include "base/json.h"

namespace epsweep {

// Of a measured record, a run's or a replayed one, in its stages' order; the regime stands in the
// heading. `where` begins the ConfigError for a record whose ranks make no sense. Empty for a
// record without times.
std::string stage_table(const Json& record, const std::string& where);

}  // namespace epsweep
