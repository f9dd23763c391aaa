// One NCCL group of sends and receives of known sizes.
#pragma once

#include <vector>

#include "cuda/exchange_parts.h"
#include "cuda/nccl_comm.h"

namespace epsweep::cuda {

// Enqueues all parts: own bytes as a copy in front of the group, others as messages, empty ones as
// nothing. `what` names the exchange in errors.
void enqueue_parts(const EpGroup& group, const NcclComm& comm, Lane& lane, const Buffer& send,
                   Buffer& recv, const std::vector<ExchangePart>& parts, const char* what);

}  // namespace epsweep::cuda
