// Whether ranks talked over what a measurement is labelled with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace epsweep {

// Kinds a pair of ranks may use. `p2p`: device to device, where a log does not tell NVLink from
// PCIe.
const std::vector<std::string>& transport_names();

// A kind, or what NCCL's log writes behind "via": "P2P/CUMEM", "SHM/direct/direct",
// "NET/IB/0/GDRDMA", "NET/Socket/0". Absent for anything else.
std::optional<std::string> transport_of_text(const std::string& text);

struct PairTransport {
  int from = 0, to = 0;  // ranks
  std::string transport;
};

// Of transport_names(); the two differ where a label tells inside of hosts from between them.
struct ExpectedTransport {
  std::string within_host, between_hosts;
};

struct RankPlaceFacts {
  int rank = 0, group = 0;
  std::string host;  // may be empty where both expectations are the same
};

struct TransportCheck {
  std::string problem;  // the first pair that used something else, and how many more; empty: none
  std::int64_t pairs_wrong = 0;      // listed, and not what was expected
  std::int64_t pairs_unlisted = 0;   // of ranks of one group, in both directions
  std::int64_t pairs_undecided = 0;  // `p2p` where nvlink is expected
  std::int64_t pairs = 0;            // of ranks of one group
};

// Ranks of pairs must be among `ranks`.
TransportCheck check_transports(const ExpectedTransport& expected,
                                const std::vector<PairTransport>& seen,
                                const std::vector<RankPlaceFacts>& ranks);

}  // namespace epsweep
