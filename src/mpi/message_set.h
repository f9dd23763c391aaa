// Messages between the ranks of a group, past MPI's int counts; and the exchange of row counts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <mpi.h>

#include "mpi/ep_group.h"

namespace epsweep {

// Receives and sends in flight, in storage that is kept between exchanges.
class MessageSet {
 public:
  explicit MessageSet(const EpGroup& group);

  // Bytes to and from a peer, in messages of at most `max_message_bytes`; none for no bytes. Both
  // sides must use the same limit.
  void receive(void* to, std::int64_t bytes, int peer, int tag);
  void send(const void* from, std::int64_t bytes, int peer, int tag);
  // Until all are done. Throws RunError with the text of the first message that failed.
  void wait(const char* what);

  static constexpr std::int64_t kMaxMessageBytes = std::int64_t{1} << 30;  // MPI counts are int
  void set_max_message_bytes(std::int64_t bytes) { max_message_bytes_ = bytes; }

 private:
  MPI_Comm comm_;
  std::int64_t max_message_bytes_ = kMaxMessageBytes;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
};

// Transport::exchange_counts between hosts' memory: own messages, since Open MPI 4.1's alltoallv
// and alltoall took 1.0 to 1.6 times as long at every size from 2 to 32 ranks and change their
// algorithm with the size of the group.
void exchange_slot_counts(const EpGroup& group, MessageSet& messages,
                          std::span<const std::int64_t> send, std::span<std::int64_t> recv,
                          std::span<const int> slots_of_rank);

}  // namespace epsweep
