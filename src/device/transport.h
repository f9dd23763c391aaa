// The exchange of one EP group.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/registry.h"
#include "device/buffer.h"
#include "device/lane.h"

namespace epsweep {

class EpGroup;  // src/mpi/ep_group.h

// Rows to and from every EP rank, self included; rows lie in rank order without gaps.
struct ExchangeRows {
  std::span<const std::int64_t> send;  // [ep_size]
  std::span<const std::int64_t> recv;  // [ep_size]
  std::int64_t row_bytes = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Blocks. send: rows for every slot in send order, [sum of slots_of_rank]; recv: rows from every
  // rank for each own slot, [ep_size][own slots].
  virtual void exchange_counts(std::span<const std::int64_t> send, std::span<std::int64_t> recv,
                               std::span<const int> slots_of_rank) = 0;
  // Enqueues; `send` and `recv` stay untouched until the lane is synchronized. Counts and bytes are
  // 64-bit; an implementation that cannot move that much refuses by name before moving anything.
  virtual void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                            const ExchangeRows& rows) = 0;
  // Collective teardown, by all ranks of the group at the same place.
  virtual void close() = 0;
};

struct TransportEntry {
  std::string name;
  std::string backend;
  std::string summary;
  std::unique_ptr<Transport> (*make)(const EpGroup& group) = nullptr;
};

using TransportCatalog = Registry<TransportEntry>;

}  // namespace epsweep
