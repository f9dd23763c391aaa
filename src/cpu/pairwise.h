// The pairwise transport with its message limit as an argument, so that tests reach the splitting
// with small data.
#pragma once

#include <cstdint>
#include <memory>

#include "device/transport.h"

namespace epsweep {

// max_message_bytes: at most 2^31-1, the same on all ranks of the group.
std::unique_ptr<Transport> make_pairwise(const EpGroup& group, std::int64_t max_message_bytes);

}  // namespace epsweep
