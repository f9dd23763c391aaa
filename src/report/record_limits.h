// The `limits` of a record, and whether it is within them.
#pragma once

#include <optional>

#include "base/json.h"
#include "plan/limits.h"

namespace epsweep {

// Absent where the record has none, or none that makes sense.
std::optional<Limits> limits_of_record(const Json& record);

// Whether the record's point ran, and no slower than its objective, if it has one: the comparison
// that decided on its ladder (latency_stop), with the same numbers.
bool is_within_objective(const Json& record);

}  // namespace epsweep
