// Bytes that one layer's dispatch moves, counted from the actual routing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/sweep_point.h"
#include "plan/topology.h"
#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {

// What is only known where the scale-up domains of the ranks are. Where nobody says anything about
// domains, hosts are the domains. Intra: to another rank of the token's own domain.
struct DomainTraffic {
  std::int64_t c_copies = 0, e_copies = 0;
  std::int64_t a_intra_copies = 0, b_intra_copies = 0;
};

// Copies of token rows of one EP group, by what is counted as one copy. The letters:
//   A  per assignment, self included (top_k per token)
//   B  per distinct destination rank, own rank included
//   C  per distinct destination domain, own domain included
//   D  per distinct remote destination rank
//   E  per distinct remote destination domain
// Self copies (destination = the token's own rank) stand apart; remote = total - self, and
// inter-domain = remote - intra. Combine returns the same copies, so its counts are the same.
struct Traffic {
  std::int64_t row_bytes = 0;  // payload of one copy: expert_io_dim * bytes of row_dtype()
  std::int64_t a_copies = 0, a_self_copies = 0;
  std::int64_t b_copies = 0, b_self_copies = 0;
  std::int64_t d_copies = 0;
  std::optional<DomainTraffic> domains;  // absent where nobody knows where the ranks are
  // Of the rank that sends / receives most remote rows (letter A).
  std::int64_t max_remote_rows_sent = 0, max_remote_rows_received = 0;
  // The same by letter D.
  std::int64_t max_d_copies_sent = 0, max_d_copies_received = 0;
};

// The largest group whose send matrix is kept: it grows with the square.
inline constexpr int kSendMatrixRanks = 32;

// What one pass over the assignments of a layer finds.
struct LayerCounts {
  std::vector<std::int64_t> rows_per_slot;  // [num_slots]
  // Rows by letter A, [source][destination] flattened, [ep_size * ep_size]; empty above
  // kSendMatrixRanks. Its row sums are what ranks send, its column sums what they receive.
  std::vector<std::int64_t> send_matrix;
  std::int64_t most_pair_rows = 0;  // by letter A, of one source to one destination, self included
  Traffic traffic;
};

// `places`: of the group's ranks, null where unknown. About 7 ns per assignment.
LayerCounts count_layer(const Trace& trace, const Placement& placement,
                        const std::vector<TokenRange>& tokens_of_rank, std::int64_t row_bytes,
                        const GroupPlaces* places = nullptr);

// Copies of one token in one layer, on average; a letter as Traffic defines it.
struct CopiesPerToken {
  struct Domains {
    double a_intra = 0, a_inter = 0, b_intra = 0, b_inter = 0, c = 0, e = 0;
  };
  double a = 0, a_self = 0, b = 0, b_self = 0, d = 0;
  std::optional<Domains> domains;
};

// num_tokens: that the traffic is of, C times layers. Absent for no tokens.
std::optional<CopiesPerToken> copies_per_token(const Traffic& traffic, std::int64_t num_tokens);

}  // namespace epsweep
