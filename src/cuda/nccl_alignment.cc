#include "cuda/nccl_alignment.h"

#include "cuda/cuda_memory.h"
#include "cuda/nccl_exchange.h"
#include "mpi/ep_group.h"

namespace epsweep::cuda {
namespace {

constexpr std::int64_t kBytes = 16;

}  // namespace

NcclAlignment::NcclAlignment(const EpGroup& group, const NcclComm& comm)
    : group_(group),
      comm_(comm),
      sent_(make_device_buffer(kBytes * group.ep_size())),
      received_(make_device_buffer(kBytes * group.ep_size())) {
  for (int rank = 0; rank < group.ep_size(); ++rank) {
    parts_.push_back({.send_begin = rank * kBytes,
                      .send_bytes = kBytes,
                      .recv_begin = rank * kBytes,
                      .recv_bytes = kBytes});
  }
}

void NcclAlignment::enqueue(Lane& lane) {
  enqueue_parts(group_, comm_, lane, sent_, received_, parts_, "alignment of ranks");
}

}  // namespace epsweep::cuda
