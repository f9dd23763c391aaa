// Where every peer's rows lie in the two buffers of an exchange, in bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "device/transport.h"
#include "mpi/ep_group.h"

namespace epsweep::cuda {

struct ExchangePart {
  std::int64_t send_begin = 0, send_bytes = 0;
  std::int64_t recv_begin = 0, recv_bytes = 0;
};

// One part for each EP rank; the caller keeps the vector, so that no exchange allocates. Throws
// RunError, with nothing touched, where the counts do not fit the group, each other (own rows sent
// and received) or the buffers.
void fill_parts(const EpGroup& group, const Buffer& send, const Buffer& recv,
                const ExchangeRows& rows, std::vector<ExchangePart>& parts);
// The same of row counts: one int64 for each slot, as Transport::exchange_counts() has them.
void fill_count_parts(const EpGroup& group, const Buffer& send, const Buffer& recv,
                      std::span<const int> slots_of_rank, std::vector<ExchangePart>& parts);

// What a rank keeps for itself, from one device buffer to the other.
void copy_own_part(const EpGroup& group, Lane& lane, const Buffer& send, Buffer& recv,
                   const std::vector<ExchangePart>& parts);

}  // namespace epsweep::cuda
