// NCCL communicators: one of the world, and parts of it.
#pragma once

#include <cstdint>

#include <nccl.h>

#include "mpi/comm.h"

namespace epsweep::cuda {

// Throws RunError naming the call; `call` is the text of the expression.
void check(ncclResult_t status, const char* call);
// The same of calls with a non-blocking communicator, which answer "in progress" where others wait.
void check_taken(ncclResult_t status, const char* call);

// The world's communicator is non-blocking, so that one that hangs while it is made or split can be
// given up. Groups' communicators block: a peer that is missing at the first exchange is noticed by
// the program's own limit on a phase. Not freed by the destructor; see close().
class NcclComm {
 public:
  // Collective over the MPI communicator; every rank has set its device.
  static NcclComm of_world(const Comm& world);
  // Ranks with the same color share a communicator, ordered by key; a negative color gets an empty
  // one. Collective over this communicator, with nothing of it under way.
  NcclComm split(int color, int key) const;

  bool empty() const { return comm_ == nullptr; }
  ncclComm_t raw() const { return comm_; }
  // Until the calls made so far are taken. Throws RunError for an error of any rank, or after
  // kReadyLimitS seconds, when the communicator is aborted.
  void wait_ready(const char* what) const;
  // Makes `calls` one group. On return its kernels are in their streams, which NCCL wants before
  // anything else is put there.
  template <typename Calls>
  void in_group(const char* what, const Calls& calls) const {
    check(ncclGroupStart(), "ncclGroupStart");
    calls();
    check_taken(ncclGroupEnd(), "ncclGroupEnd");
    wait_ready(what);
  }
  // Collective: flushes and frees.
  void close();

  static constexpr double kReadyLimitS = 300;

 private:
  ncclComm_t comm_ = nullptr;
};

}  // namespace epsweep::cuda
