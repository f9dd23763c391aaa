// Exchange by ncclAlltoAll: the same number of rows for every pair of ranks, used or not.
#include "base/error.h"
#include "cuda/cuda_lane.h"
#include "cuda/nccl_alignment.h"
#include "cuda/nccl_exchange.h"
#include "cuda/nccl_fabric.h"
#include "cuda/nccl_version.h"
#include "device/transport.h"
#include "mpi/ep_group.h"

namespace epsweep::cuda {
namespace {

// A template, so that headers without the function compile: all_to_all_refusal() keeps such a
// program from getting here.
template <typename Communicator>
ncclResult_t all_to_all(const Buffer& send, Buffer& recv, std::int64_t pair_bytes,
                        Communicator comm, cudaStream_t stream) {
  if constexpr (NCCL_VERSION_CODE >= kAllToAllSince) {
    return ncclAlltoAll(send.data(), recv.data(), static_cast<std::size_t>(pair_bytes), ncclInt8,
                        comm, stream);
  } else {
    return ncclInvalidUsage;
  }
}

// Nothing waits for the host: how many rows a section really holds is on the device, in the counts
// that were exchanged, for the kernels that read the sections. All of it can be captured.
class NcclAlltoall final : public Transport {
 public:
  NcclAlltoall(const EpGroup& group, const NcclComm& comm)
      : group_(group),
        comm_(comm),
        parts_(static_cast<std::size_t>(group.ep_size())),
        alignment_(group, comm) {}

  // Ranks may differ by one slot, so a group of sends and receives, of sizes that all ranks know.
  void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                       std::span<const int> slots_of_rank) override {
    fill_count_parts(group_, send, recv, slots_of_rank, parts_);
    enqueue_parts(group_, comm_, lane, send, recv, parts_, "exchange of row counts");
  }

  void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    EPS_EXPECT(rows.capacity > 0, "a transport of fixed capacity needs one");
    fill_parts(group_, send, recv, rows, parts_);
    check_taken(
        all_to_all(send, recv, rows.capacity * rows.row_bytes, comm_.raw(), stream_of(lane)),
        "ncclAlltoAll");
    comm_.wait_ready("exchange of rows");
  }

  void align(Lane& lane) override { alignment_.enqueue(lane); }

  void close() override {}

 private:
  const EpGroup& group_;
  const NcclComm& comm_;
  std::vector<ExchangePart> parts_;
  NcclAlignment alignment_;
};

const bool kAdded = TransportCatalog::instance().add(
    {.name = "nccl_alltoall",
     .backend = "cuda",
     .summary = "ncclAlltoAll: fixed capacity per pair of ranks, padding travels, no host wait",
     .capacity = Capacity::fixed,
     .refuses = []() -> std::optional<std::string> {
       if (auto reason = all_to_all_refusal(nccl_versions())) return reason;
       return shared_gpu_refusal(nccl_versions());
     },
     .make_fabric = make_nccl_fabric,
     .make = [](const EpGroup& group, Fabric* fabric) -> std::unique_ptr<Transport> {
       return std::make_unique<NcclAlltoall>(group, group_comm(*fabric));
     }});

}  // namespace
}  // namespace epsweep::cuda
