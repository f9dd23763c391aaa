// Exchange by NCCL: one group of sends and receives with the exact counts.
#include "cuda/nccl_alignment.h"
#include "cuda/nccl_exchange.h"
#include "cuda/nccl_fabric.h"
#include "cuda/nccl_version.h"
#include "device/transport.h"
#include "mpi/ep_group.h"

namespace epsweep::cuda {
namespace {

class NcclSendrecv final : public Transport {
 public:
  NcclSendrecv(const EpGroup& group, const NcclComm& comm)
      : group_(group),
        comm_(comm),
        parts_(static_cast<std::size_t>(group.ep_size())),
        alignment_(group, comm) {}

  void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                       std::span<const int> slots_of_rank) override {
    fill_count_parts(group_, send, recv, slots_of_rank, parts_);
    enqueue_parts(group_, comm_, lane, send, recv, parts_, "exchange of row counts");
    lane.synchronize();
  }

  void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    fill_parts(group_, send, recv, rows, parts_);
    enqueue_parts(group_, comm_, lane, send, recv, parts_, "exchange of rows");
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
    {.name = "nccl_sendrecv",
     .backend = "cuda",
     .summary = "NCCL sends and receives of exact counts in one group",
     .refuses = [] { return shared_gpu_refusal(nccl_versions()); },
     .make_fabric = make_nccl_fabric,
     .make = [](const EpGroup& group, Fabric* fabric) -> std::unique_ptr<Transport> {
       return std::make_unique<NcclSendrecv>(group, group_comm(*fabric));
     }});

}  // namespace
}  // namespace epsweep::cuda
