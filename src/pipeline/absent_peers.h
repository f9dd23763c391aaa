// The exchange of a rank whose peers are not there: what a rank of a wide EP size would get, so
// that one rank alone can run the stages between the exchanges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/backend.h"
#include "device/transport.h"
#include "pipeline/layer_indices.h"
#include "pipeline/rank_work.h"

namespace epsweep {

// Counts, and with exchange unit `rank` slots and weights of copies, are those of the work's plan,
// so the experts get exactly the planned rows in the planned order. The rows themselves hold
// payload values of other tokens (results, in combine, of no experts), copied where a real exchange
// would leave them, just before they are needed. How long that takes says nothing.
//
// Of transports of exact capacity.
class AbsentPeers final : public Transport {
 public:
  // Takes memory for the rows of one exchange: absent_peer_bytes().
  AbsentPeers(const RankWork& work, Backend& backend);

  // Before the layer's stages, as nothing else tells which layer they are of.
  void begin_layer(int routing);

  void exchange_counts(Lane& lane, const Buffer& send, Buffer& recv,
                       std::span<const int> slots_of_rank) override;
  void all_to_all_v(Lane& lane, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override;
  void close() override {}

 private:
  void write_uses(int routing);

  const RankWork& work_;
  Backend& backend_;
  int routing_ = 0, uses_of_routing_ = -1;
  bool dispatched_ = false;  // the next exchange of the layer is combine
  Buffer rows_;              // payload values
  Buffer messages_;          // of exchange unit `rank`: the same with the uses in it
  std::vector<std::byte> without_uses_;
  HostIndex in_order_;  // 0, 1, 2, ...
};

// What it allocates beside what the layer does.
std::int64_t absent_peer_bytes(const RankWork& work);

}  // namespace epsweep
