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

class Comm;     // src/mpi/comm.h
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
  // send: int64 rows for every slot in send order, [sum of slots_of_rank]; recv: int64 rows from
  // every rank for each own slot, [ep_size][own slots]. Returns when `recv` may be copied to the
  // host; what was enqueued on the lane is done then.
  virtual void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                               std::span<const int> slots_of_rank) = 0;
  // Enqueues; `send` and `recv` stay untouched until the lane is synchronized. Counts and bytes are
  // 64-bit; an implementation that cannot move that much refuses by name before moving anything.
  virtual void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                            const ExchangeRows& rows) = 0;
  // Collective teardown, by all ranks of the group at the same place.
  virtual void close() = 0;
};

// What a transport needs of all ranks of a launch before one group can use it: communicators.
class Fabric {
 public:
  virtual ~Fabric() = default;
  // Collective teardown, by all ranks at the same place.
  virtual void close() = 0;
};

struct TransportEntry {
  std::string name;
  std::string backend;
  std::string summary;
  // Collective over the world, idle ranks included, whose group is null; kept for each layout of
  // groups. Null where a transport needs nothing.
  std::unique_ptr<Fabric> (*make_fabric)(const Comm& world, const EpGroup* group) = nullptr;
  // `fabric` is what make_fabric made for the group's layout, else null.
  std::unique_ptr<Transport> (*make)(const EpGroup& group, Fabric* fabric) = nullptr;
};

using TransportCatalog = Registry<TransportEntry>;

}  // namespace epsweep
