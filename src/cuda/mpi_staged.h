// The host-staged transport with its message limit as an argument, so that tests reach the
// splitting with small data.
#pragma once

#include <cstdint>
#include <memory>

#include "device/transport.h"

namespace epsweep::cuda {

// max_message_bytes: at most 2^31-1, the same on all ranks of the group.
std::unique_ptr<Transport> make_mpi_staged(const EpGroup& group, std::int64_t max_message_bytes);

}  // namespace epsweep::cuda
