// A copy that leaves the caches out where the processor can.
#pragma once

#include <cstdint>

namespace epsweep {

// bytes: a multiple of 16; both addresses too. With streaming stores, so that memory sees one read
// and one write of every byte; a processor without them reads lines before it writes them.
void stream_copy(const void* from, void* to, std::int64_t bytes);

}  // namespace epsweep
