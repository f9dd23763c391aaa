// Makes later reads of a range come from memory.
#pragma once

#include <cstdint>

namespace epsweep {

// Evicts [data, data + bytes) from all caches of the host, written lines included. The contents
// stay. Costs about as much as reading the range; never inside timing.
void flush_from_caches(const void* data, std::int64_t bytes);

}  // namespace epsweep
