#include "mpi/message_set.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "mpi/comm.h"

namespace epsweep {
namespace {

constexpr int kCountsTag = 21;

}  // namespace

MessageSet::MessageSet(const EpGroup& group) : comm_(group.comm().raw()) {
  const auto both_ways = 2 * static_cast<std::size_t>(group.ep_size());
  requests_.reserve(both_ways);
  statuses_.reserve(both_ways);
}

void MessageSet::receive(void* to, std::int64_t bytes, int peer, int tag) {
  for (std::int64_t begin = 0; begin < bytes; begin += max_message_bytes_) {
    const auto count = static_cast<int>(std::min(max_message_bytes_, bytes - begin));
    check_mpi(MPI_Irecv(static_cast<std::byte*>(to) + begin, count, MPI_BYTE, peer, tag, comm_,
                        &requests_.emplace_back(MPI_REQUEST_NULL)),
              "posting a receive");
  }
}

void MessageSet::send(const void* from, std::int64_t bytes, int peer, int tag) {
  for (std::int64_t begin = 0; begin < bytes; begin += max_message_bytes_) {
    const auto count = static_cast<int>(std::min(max_message_bytes_, bytes - begin));
    check_mpi(MPI_Isend(static_cast<const std::byte*>(from) + begin, count, MPI_BYTE, peer, tag,
                        comm_, &requests_.emplace_back(MPI_REQUEST_NULL)),
              "posting a send");
  }
}

void MessageSet::wait(const char* what) {
  statuses_.resize(requests_.size());
  const int code =
      MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), statuses_.data());
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : statuses_) {
      if (status.MPI_ERROR != MPI_ERR_PENDING) check_mpi(status.MPI_ERROR, what);
    }
  }
  check_mpi(code, what);
  requests_.clear();
}

void exchange_slot_counts(const EpGroup& group, MessageSet& messages,
                          std::span<const std::int64_t> send, std::span<std::int64_t> recv,
                          std::span<const int> slots_of_rank) {
  const int size = group.ep_size(), self = group.ep_rank();
  EPS_EXPECT(slots_of_rank.size() == static_cast<std::size_t>(size), "slots of every EP rank");
  const auto slots = [&](int rank) {
    return std::int64_t{slots_of_rank[static_cast<std::size_t>(rank)]};
  };
  const std::int64_t own_slots = slots(self);
  std::int64_t all_slots = 0, own_begin = 0;
  for (int rank = 0; rank < size; ++rank) {
    if (rank == self) own_begin = all_slots;
    all_slots += slots(rank);
  }
  EPS_EXPECT(std::ssize(send) == all_slots, "one row count per slot of the group");
  EPS_EXPECT(std::ssize(recv) == size * own_slots, "one row count per own slot and EP rank");

  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(std::int64_t));
  for (int step = 1; step < size; ++step) {
    const int source = (self - step + size) % size;
    messages.receive(recv.data() + source * own_slots, own_slots * kBytes, source, kCountsTag);
  }
  std::int64_t begin = own_begin + own_slots;
  for (int step = 1; step < size; ++step) {
    const int target = (self + step) % size;
    if (target == 0) begin = 0;
    messages.send(send.data() + begin, slots(target) * kBytes, target, kCountsTag);
    begin += slots(target);
  }
  std::copy_n(send.begin() + own_begin, own_slots, recv.begin() + self * own_slots);
  messages.wait("exchange of row counts");
}

}  // namespace epsweep
