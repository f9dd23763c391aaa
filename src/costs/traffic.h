// Bytes that one layer's dispatch moves, counted from the actual routing.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/sweep_point.h"
#include "workload/placement.h"
#include "workload/trace.h"

namespace epsweep {

// Copies of token rows of one EP group, by what is counted as one copy. The letters:
//   A  per assignment, self included (top_k per token)
//   B  per distinct destination rank, own rank included
//   D  per distinct remote destination rank
// Self copies (destination = the token's own rank) stand apart; remote = total - self.
// Combine returns the same copies, so its counts are the same.
struct Traffic {
  std::int64_t row_bytes = 0;  // payload of one copy: expert_io_dim * bytes of the dtype
  std::int64_t a_copies = 0, a_self_copies = 0;
  std::int64_t b_copies = 0, b_self_copies = 0;
  std::int64_t d_copies = 0;
  // Of the rank that sends / receives most remote rows (letter A).
  std::int64_t max_remote_rows_sent = 0, max_remote_rows_received = 0;
};

// send_matrix[source][destination] rows by letter A, [ep_size][ep_size] flattened.
std::vector<std::int64_t> send_matrix(const Trace& trace, const Placement& placement,
                                      const std::vector<TokenRange>& tokens_of_rank);

Traffic count_traffic(const Trace& trace, const Placement& placement,
                      const std::vector<TokenRange>& tokens_of_rank, std::int64_t row_bytes);

}  // namespace epsweep
