// What a deployment holds, as plans and records show it.
#pragma once

#include <optional>

#include "base/json.h"
#include "costs/serving_memory.h"

namespace epsweep {

// Bytes of the rank with most; null for what is unknown, and for an absent memory.
Json serving_memory_json(const std::optional<ServingMemory>& memory);

// What its keys mean.
const char* serving_memory_formula();

}  // namespace epsweep
