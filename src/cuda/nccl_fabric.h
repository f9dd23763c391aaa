// The NCCL communicator of an EP group, split from one of the world.
#pragma once

#include <memory>

#include "cuda/nccl_comm.h"
#include "device/transport.h"

namespace epsweep::cuda {

// Collective over the world: the first call makes the world's communicator, which is kept.
std::unique_ptr<Fabric> make_nccl_fabric(const Comm& world, const EpGroup* group);
// Of a fabric that make_nccl_fabric() made on a rank with a group.
const NcclComm& group_comm(Fabric& fabric);

}  // namespace epsweep::cuda
