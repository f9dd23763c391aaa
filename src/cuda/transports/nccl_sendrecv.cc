// Exchange by NCCL: one group of sends and receives with the exact counts.
#include <cstddef>
#include <numeric>

#include "base/error.h"
#include "cuda/cuda_lane.h"
#include "cuda/nccl_fabric.h"
#include "device/transport.h"
#include "mpi/ep_group.h"

namespace epsweep::cuda {
namespace {

class NcclSendrecv final : public Transport {
 public:
  NcclSendrecv(const EpGroup& group, const NcclComm& comm) : group_(group), comm_(comm) {}

  void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                       std::span<const int> slots_of_rank) override {
    const auto own_slots = std::int64_t{slots_of_rank[static_cast<std::size_t>(group_.ep_rank())]};
    std::int64_t begin = 0;
    start_group();
    for (int rank = 0; rank < group_.ep_size(); ++rank) {
      const std::int64_t slots = slots_of_rank[static_cast<std::size_t>(rank)];
      post(lane, send, recv,
           {.peer = rank,
            .send_begin = begin * kCountBytes,
            .send_bytes = slots * kCountBytes,
            .recv_begin = rank * own_slots * kCountBytes,
            .recv_bytes = own_slots * kCountBytes});
      begin += slots;
    }
    EPS_EXPECT(begin * kCountBytes <= send.bytes(), "one row count per slot of the group");
    end_group("exchange of row counts");
    lane.synchronize();
  }

  void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    std::int64_t send_begin = 0, recv_begin = 0;
    start_group();
    for (int rank = 0; rank < group_.ep_size(); ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      const Part part{.peer = rank,
                      .send_begin = send_begin,
                      .send_bytes = rows.send[at] * rows.row_bytes,
                      .recv_begin = recv_begin,
                      .recv_bytes = rows.recv[at] * rows.row_bytes};
      post(lane, send, recv, part);
      send_begin += part.send_bytes;
      recv_begin += part.recv_bytes;
    }
    EPS_EXPECT(send_begin <= send.bytes() && recv_begin <= recv.bytes(),
               "rows do not fit the buffers of the exchange");
    end_group("exchange of rows");
  }

  void close() override {}

 private:
  static constexpr auto kCountBytes = static_cast<std::int64_t>(sizeof(std::int64_t));

  // What goes to and comes from one peer.
  struct Part {
    int peer = 0;
    std::int64_t send_begin = 0, send_bytes = 0, recv_begin = 0, recv_bytes = 0;
  };

  // Own rows are copied by the device beside the exchange; empty messages are not sent.
  void post(Lane& lane, const Buffer& send, Buffer& recv, const Part& part) {
    const cudaStream_t stream = stream_of(lane);
    const auto* from = static_cast<const std::byte*>(send.data()) + part.send_begin;
    auto* to = static_cast<std::byte*>(recv.data()) + part.recv_begin;
    if (part.peer == group_.ep_rank()) {
      EPS_EXPECT(part.send_bytes == part.recv_bytes, "a rank receives from itself what it sends");
      if (part.send_bytes == 0) return;
      EPS_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(part.send_bytes),
                               cudaMemcpyDeviceToDevice, stream));
      return;
    }
    if (part.send_bytes > 0) {
      check(ncclSend(from, static_cast<std::size_t>(part.send_bytes), ncclInt8, part.peer,
                     comm_.raw(), stream),
            "ncclSend");
    }
    if (part.recv_bytes > 0) {
      check(ncclRecv(to, static_cast<std::size_t>(part.recv_bytes), ncclInt8, part.peer,
                     comm_.raw(), stream),
            "ncclRecv");
    }
  }

  void start_group() { check(ncclGroupStart(), "ncclGroupStart"); }
  void end_group(const char* what) {
    const ncclResult_t status = ncclGroupEnd();
    if (status != ncclInProgress) check(status, "ncclGroupEnd");
    comm_.wait_ready(what);
  }

  const EpGroup& group_;
  const NcclComm& comm_;
};

const bool kAdded = TransportCatalog::instance().add(
    {.name = "nccl_sendrecv",
     .backend = "cuda",
     .summary = "NCCL sends and receives of exact counts in one group",
     .make_fabric = make_nccl_fabric,
     .make = [](const EpGroup& group, Fabric* fabric) -> std::unique_ptr<Transport> {
       return std::make_unique<NcclSendrecv>(group, group_comm(*fabric));
     }});

}  // namespace
}  // namespace epsweep::cuda
