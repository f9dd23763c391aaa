#include "cuda/nccl_comm.h"

#include <array>
#include <cstring>

#include <fmt/format.h>
#include <sched.h>

#include "base/error.h"
#include "base/host_probe.h"

namespace epsweep::cuda {
namespace {

// NCCL's 128 bytes as the integers that travel.
ncclUniqueId share_id(const Comm& world) {
  ncclUniqueId id{};
  std::array<std::int64_t, sizeof(id) / sizeof(std::int64_t)> words{};
  static_assert(sizeof(words) == sizeof(id));
  if (world.rank() == 0) {
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    std::memcpy(words.data(), &id, sizeof(id));
  }
  world.broadcast(std::span(words), 0);
  std::memcpy(&id, words.data(), sizeof(id));
  return id;
}

}  // namespace

void check(ncclResult_t status, const char* call) {
  if (status == ncclSuccess) return;
  throw RunError(fmt::format("{}: {} (NCCL: {})", call, ncclGetErrorString(status),
                             ncclGetLastError(nullptr)));
}

void check_taken(ncclResult_t status, const char* call) {
  if (status != ncclInProgress) check(status, call);
}

NcclComm NcclComm::of_world(const Comm& world) {
  const ncclUniqueId id = share_id(world);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  NcclComm comm;
  check_taken(ncclCommInitRankConfig(&comm.comm_, world.size(), id, world.rank(), &config),
              "ncclCommInitRankConfig");
  comm.wait_ready("making the world communicator");
  return comm;
}

NcclComm NcclComm::split(int color, int key) const {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  // NCCL 2.28 starts a thread for every group of calls on a non-blocking communicator, which would
  // be measured as the exchange.
  config.blocking = 1;
  NcclComm part;
  check_taken(
      ncclCommSplit(comm_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &part.comm_, &config),
      "ncclCommSplit");
  wait_ready("splitting a communicator");
  if (!part.empty()) part.wait_ready("making a group's communicator");
  return part;
}

void NcclComm::wait_ready(const char* what) const {
  const double begin_s = monotonic_s();
  for (;;) {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
    if (state == ncclSuccess) return;
    if (state != ncclInProgress) {
      ncclCommAbort(comm_);
      check(state, what);
    }
    if (monotonic_s() - begin_s > kReadyLimitS) {
      ncclCommAbort(comm_);
      throw RunError(fmt::format("{}: NCCL was not ready after {:.0f} s", what, kReadyLimitS));
    }
    sched_yield();
  }
}

void NcclComm::close() {
  if (empty()) return;
  check_taken(ncclCommFinalize(comm_), "ncclCommFinalize");
  wait_ready("finalizing a communicator");
  check(ncclCommDestroy(comm_), "ncclCommDestroy");
  comm_ = nullptr;
}

}  // namespace epsweep::cuda
