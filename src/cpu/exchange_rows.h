// What the CPU transports share: argument checks and own rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/transport.h"
#include "mpi/ep_group.h"

namespace epsweep {

// Row at which every peer's part begins in the two buffers; [ep_size] each.
struct RowOffsets {
  explicit RowOffsets(int ep_size)
      : send(static_cast<std::size_t>(ep_size)), recv(static_cast<std::size_t>(ep_size)) {}
  std::vector<std::int64_t> send, recv;
};

// Fills `offsets`, which the caller keeps so that no exchange allocates. Throws RunError if the
// counts do not fit the group, each other (own rows sent and received) or the buffers.
void fill_offsets(const EpGroup& group, const Buffer& send, const Buffer& recv,
                  const ExchangeRows& rows, RowOffsets& offsets);

// Rows for the rank itself; the buffers do not overlap.
void copy_own_rows(const EpGroup& group, const Buffer& send, Buffer& recv, const ExchangeRows& rows,
                   const RowOffsets& offsets);

}  // namespace epsweep
