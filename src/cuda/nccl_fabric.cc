#include "cuda/nccl_fabric.h"

#include "mpi/ep_group.h"

namespace epsweep::cuda {
namespace {

class NcclFabric final : public Fabric {
 public:
  explicit NcclFabric(NcclComm comm) : comm_(comm) {}
  const NcclComm& comm() const { return comm_; }
  void close() override { comm_.close(); }

 private:
  NcclComm comm_;
};

// Made once: a communicator of hundreds of ranks takes seconds, a split of it far less. It lives
// until the process ends, since NCCL wants all ranks at its end and a failed run has not all.
const NcclComm& world_comm(const Comm& world) {
  static const NcclComm comm = NcclComm::of_world(world);
  return comm;
}

}  // namespace

std::unique_ptr<Fabric> make_nccl_fabric(const Comm& world, const EpGroup* group) {
  const int color = group == nullptr ? -1 : group->group();
  const int key = group == nullptr ? 0 : group->ep_rank();
  return std::make_unique<NcclFabric>(world_comm(world).split(color, key));
}

const NcclComm& group_comm(Fabric& fabric) {
  return static_cast<NcclFabric&>(fabric).comm();
}

}  // namespace epsweep::cuda
