#include "costs/traffic.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"

namespace epsweep {
namespace {

// Counts one token's distinct destination ranks. `last_token[rank]` remembers the last token that
// went there, so that nothing has to be cleared between tokens.
void count_destinations(const Trace& trace, const Placement& placement, std::int64_t token,
                        std::size_t home, std::vector<std::int64_t>& last_token, Traffic& traffic) {
  for (const std::int32_t expert : trace.of_token(token)) {
    const auto rank = static_cast<std::size_t>(placement.rank_of(expert, token));
    if (last_token[rank] == token) continue;
    last_token[rank] = token;
    ++traffic.b_copies;
    if (rank == home) ++traffic.b_self_copies;
  }
}

void find_busiest_ranks(const std::vector<std::int64_t>& matrix, std::size_t ep_size,
                        Traffic& traffic) {
  for (std::size_t rank = 0; rank < ep_size; ++rank) {
    std::int64_t sent = 0, received = 0;
    for (std::size_t other = 0; other < ep_size; ++other) {
      if (other == rank) continue;
      sent += matrix[rank * ep_size + other];
      received += matrix[other * ep_size + rank];
    }
    traffic.a_self_copies += matrix[rank * ep_size + rank];
    traffic.max_remote_rows_sent = std::max(traffic.max_remote_rows_sent, sent);
    traffic.max_remote_rows_received = std::max(traffic.max_remote_rows_received, received);
  }
}

}  // namespace

std::vector<std::int64_t> send_matrix(const Trace& trace, const Placement& placement,
                                      const std::vector<TokenRange>& tokens_of_rank) {
  const auto ep_size = static_cast<std::size_t>(placement.ep_size);
  EPS_EXPECT(tokens_of_rank.size() == ep_size,
             "token ranges and placement are of different EP sizes");
  std::vector<std::int64_t> matrix(ep_size * ep_size, 0);
  for (std::size_t source = 0; source < ep_size; ++source) {
    for (std::int64_t t = tokens_of_rank[source].begin; t < tokens_of_rank[source].end; ++t) {
      for (const std::int32_t expert : trace.of_token(t)) {
        const int rank = placement.rank_of(expert, t);
        ++matrix[source * ep_size + static_cast<std::size_t>(rank)];
      }
    }
  }
  return matrix;
}

Traffic count_traffic(const Trace& trace, const Placement& placement,
                      const std::vector<TokenRange>& tokens_of_rank, std::int64_t row_bytes) {
  Traffic traffic;
  traffic.row_bytes = row_bytes;
  traffic.a_copies = static_cast<std::int64_t>(trace.experts.size());
  find_busiest_ranks(send_matrix(trace, placement, tokens_of_rank),
                     static_cast<std::size_t>(placement.ep_size), traffic);
  std::vector<std::int64_t> last_token(static_cast<std::size_t>(placement.ep_size), -1);
  for (std::size_t home = 0; home < tokens_of_rank.size(); ++home) {
    for (std::int64_t t = tokens_of_rank[home].begin; t < tokens_of_rank[home].end; ++t) {
      count_destinations(trace, placement, t, home, last_token, traffic);
    }
  }
  traffic.d_copies = traffic.b_copies - traffic.b_self_copies;
  return traffic;
}

}  // namespace epsweep
