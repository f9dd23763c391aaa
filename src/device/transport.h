// The exchange of one EP group.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/registry.h"
#include "device/buffer.h"
#include "device/lane.h"

namespace epsweep {

class Comm;     // src/mpi/comm.h
class EpGroup;  // src/mpi/ep_group.h

// How much room a pair of ranks has in the buffers, and who must know how much of it is used.
// exact: as much as it needs, so the host must know the row counts and waits for their exchange.
// fixed: a section of the same number of rows for every pair, which travels whole; counts stay on
// the device, and nothing from the router to the last sum waits for the host.
enum class Capacity { exact, fixed };

// Rows to and from every EP rank, self included; rows lie in rank order without gaps, or, with a
// capacity, those of rank r begin at row r * capacity.
struct ExchangeRows {
  std::span<const std::int64_t> send;  // [ep_size]
  std::span<const std::int64_t> recv;  // [ep_size]
  std::int64_t row_bytes = 0;
  std::int64_t capacity = 0;  // rows of a pair's section; of transports of fixed capacity only
};

class Transport {
 public:
  virtual ~Transport() = default;
  // send: int64 rows for every slot in send order, [sum of slots_of_rank]; recv: int64 rows from
  // every rank for each own slot, [ep_size][own slots]. With exact capacity, returns when `recv`
  // may be copied to the host; what was enqueued on the lane is done then. With fixed capacity,
  // enqueues.
  virtual void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                               std::span<const int> slots_of_rank) = 0;
  // Enqueues; `send` and `recv` stay untouched until the lane is synchronized. Counts and bytes are
  // 64-bit; an implementation that cannot move that much refuses by name before moving anything, as
  // does one of fixed capacity for a pair with more rows.
  virtual void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                            const ExchangeRows& rows) = 0;
  // Enqueues what no rank of the group passes before all are there, so that what follows on the
  // lane begins together on all devices. Nothing where the host does the work: ranks met there.
  virtual void align(Lane& lane) { static_cast<void>(lane); }
  // The layer whose exchange of counts, dispatch and combine follow, in this order; by the number
  // of its routing. Of no interest to what moves whatever it is given.
  virtual void begin_layer(int routing) { static_cast<void>(routing); }
  // Every layer has run once and its values were right: what follows is warm-up and timing.
  virtual void end_rehearsal() {}
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

class Backend;  // device/backend.h

// Of a transport that decorates the one that a backend has: it goes with every backend.
inline constexpr const char* kAnyBackend = "any";

struct TransportEntry {
  std::string name;
  std::string backend;
  std::string summary;
  Capacity capacity = Capacity::exact;
  // Why the libraries that were found cannot do it; null where there is nothing to ask.
  std::optional<std::string> (*refuses)() = nullptr;
  // Collective over the world, idle ranks included, whose group is null; kept for each layout of
  // groups. Null where a transport needs nothing.
  std::unique_ptr<Fabric> (*make_fabric)(const Comm& world, const EpGroup* group) = nullptr;
  // `fabric` is what make_fabric made for the group's layout, else null.
  std::unique_ptr<Transport> (*make)(const EpGroup& group, Fabric* fabric) = nullptr;
  // Instead of `make`, with kAnyBackend: what it makes of one that moves rows between ranks; the
  // backend outlives it.
  std::unique_ptr<Transport> (*decorate)(std::unique_ptr<Transport> real,
                                         Backend& backend) = nullptr;
};

using TransportCatalog = Registry<TransportEntry>;

}  // namespace epsweep
