// A copy that leaves the caches out where the processor can.
#pragma once

#include <cstdint>

#include "cpu/row_streams.h"

namespace epsweep {

// Addresses: multiples of 16. With streaming stores, so that memory sees one read and one write of
// every byte; a processor without them reads lines before it writes them.
inline void stream_copy(const void* from, void* to, std::int64_t bytes) {
  stream_row(from, from, to, bytes);
  stream_fence();
}

}  // namespace epsweep
