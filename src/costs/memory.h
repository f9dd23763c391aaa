// What a rank's memory must hold for a point.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "costs/copy_rows.h"
#include "plan/sweep_point.h"

namespace epsweep {

// Shared experts, KV cache and library buffers are not in it.
struct MemoryNeed {
  std::int64_t weight_bytes = 0;      // largest rank, all layers; gate weights and scales included
  std::int64_t activation_bytes = 0;  // largest rank: tokens, send, receive, inner and output rows
  // What the rank's kernel allocates for its rows in all layers (GroupedGemmEntry::scratch_bytes);
  // 0 in plans, which choose no kernel.
  std::int64_t kernel_scratch_bytes = 0;
  std::int64_t total() const { return weight_bytes + activation_bytes + kernel_scratch_bytes; }
};

// `max_slots`: of the rank with most. `max_recv_rows` R: the most rows any rank receives in any
// layer. With T the most tokens of any rank, b bytes of row_dtype(), k = top_k and IO =
// expert_io_dim, activation_bytes is the sum of
//   T * hidden_dim * b                    tokens
//   2 * T * k * IO * b                    rows sent, and the expert outputs that come back
//   2 * T * k * 4                         chosen experts and their router weights
//   4 * R * IO * b                        rows received and in expert order, expert outputs in
//                                         expert order and to be returned
//   R * (gate_up_cols + ffn_dim) * b      before and after the activation
//   T * IO * 4                            weighted sums, fp32
// With exchange unit `rank`, S copies sent and V received by the ranks with most, and granules of g
// bytes (workload/rank_dispatch.h), the second and the fourth line are instead
//   2 * S * IO * b + 2 * (T * k * 8 + P * g)   copies sent, partial sums that come back; slots and
//                                              weights of the copies, beside them and by themselves
//   (2 * V + 2 * R) * IO * b + 2 * (R * 8 + P * g) + R * 4
//                                              copies received, partial sums, repeated copies in
//                                              expert order and their outputs; slots and weights in
//                                              the same two ways, and the weights by row
// With a capacity of c rows per pair of ranks, P * c rows stand in for T * k in the second line and
// for R in half of the fourth (what is received and returned).
// Transport local_copy keeps what it replays (pipeline/local_copy.h), for each of L = layers *
// vary_routing routings and s slots of the rank with most:
//   L * (P * (s + 1) * 8 + (R + T * k) * IO * b)                        counts, dispatch, combine
//   L * (P * (s + 1) * 8 + (V + S) * IO * b + R * 8 + P * g)            with exchange unit `rank`
// Layers reuse the other buffers. T, R, S and V may be of different ranks, so the sum is an upper
// bound.
MemoryNeed memory_need(const SweepPoint& point, std::int64_t max_slots, std::int64_t max_recv_rows,
                       const MaxCopies& copies = {}, std::int64_t capacity_rows = 0);

// "12.34 GiB", or MiB and KiB for small amounts.
std::string size_text(std::int64_t bytes);

// "needs 12.3 GiB per rank, 8.0 GiB available: 4.3 GiB short" (MiB and KiB for small amounts);
// absent if it fits.
std::optional<std::string> memory_shortfall(const MemoryNeed& need, std::int64_t available_bytes);

}  // namespace epsweep
