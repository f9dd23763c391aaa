// What the layers of a chain find of their weights in the caches.
#pragma once

#include <cstdint>
#include <string>

#include "plan/sweep_point.h"

namespace epsweep {

// "warm": weight_cache asks for it. "cold": flushed before a chain that reads each layer once, or
// one round through the layers touches at least twice what the last-level cache holds, on the rank
// that touches least. Else "revisited": later rounds may find them.
std::string chain_weights(const SweepPoint& point, std::int64_t least_touched_bytes,
                          std::int64_t last_level_cache_bytes);

}  // namespace epsweep
