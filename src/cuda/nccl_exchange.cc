#include "cuda/nccl_exchange.h"

#include <cstddef>

#include "cuda/cuda_lane.h"

namespace epsweep::cuda {

// Nothing that may be refused happens inside the group: an open group would swallow later calls.
void enqueue_parts(const EpGroup& group, const NcclComm& comm, Lane& lane, const Buffer& send,
                   Buffer& recv, const std::vector<ExchangePart>& parts, const char* what) {
  copy_own_part(group, lane, send, recv, parts);
  const cudaStream_t stream = stream_of(lane);
  comm.in_group(what, [&] {
    for (int rank = 0; rank < group.ep_size(); ++rank) {
      if (rank == group.ep_rank()) continue;
      const ExchangePart& part = parts[static_cast<std::size_t>(rank)];
      if (part.send_bytes > 0) {
        check_taken(
            ncclSend(static_cast<const std::byte*>(send.data()) + part.send_begin,
                     static_cast<std::size_t>(part.send_bytes), ncclInt8, rank, comm.raw(), stream),
            "ncclSend");
      }
      if (part.recv_bytes > 0) {
        check_taken(
            ncclRecv(static_cast<std::byte*>(recv.data()) + part.recv_begin,
                     static_cast<std::size_t>(part.recv_bytes), ncclInt8, rank, comm.raw(), stream),
            "ncclRecv");
      }
    }
  });
}

}  // namespace epsweep::cuda
