// What makes the devices of a group begin together.
#pragma once

#include <vector>

#include "cuda/exchange_parts.h"
#include "cuda/nccl_comm.h"
#include "device/buffer.h"
#include "device/lane.h"

namespace epsweep::cuda {

// A few bytes from every rank to every other one: no rank is done before all have come. It keeps
// the device busy for some 10 us, in which the host enqueues what is to be timed.
class NcclAlignment {
 public:
  NcclAlignment(const EpGroup& group, const NcclComm& comm);
  void enqueue(Lane& lane);

 private:
  const EpGroup& group_;
  const NcclComm& comm_;
  Buffer sent_, received_;
  std::vector<ExchangePart> parts_;
};

}  // namespace epsweep::cuda
