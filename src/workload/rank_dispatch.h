// What one rank sends, receives and computes for one layer if a token row travels once per distinct
// destination rank (exchange unit `rank`), from routing and placement alone.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workload/dispatch_plan.h"

namespace epsweep {

// Order of things; assignment, local expert and expert order are those of dispatch_plan.h. A copy
// is (own token, destination rank) with at least one assignment of the token that a slot of that
// rank serves; the token's own rank is a destination like the others. A use is an assignment as its
// copy carries it. Send order of copies: by destination rank, then token. Receive order: by source
// rank, then token. Uses lie in the order of their copies, and in choice order within a copy, so a
// pair of ranks exchanges as many uses as it does rows under unit `assignment`. Rows in expert
// order are the same as there, one per use: by local expert, then source rank, then token. A
// token's slots are different ones (its experts are distinct), so no two uses of a copy share a
// slot.
struct RankDispatch {
  std::vector<std::int64_t> send_copies;  // [ep_size]
  std::vector<std::int64_t> recv_copies;  // [ep_size]
  // Source side. Token numbers count from the rank's first token.
  std::vector<std::int32_t> token_of_copy;      // [sent copies], send order
  std::vector<std::int32_t> assignment_of_use;  // [own assignments], send order
  std::vector<std::int32_t> sent_uses;          // [own assignments], send order: use_word()
  std::vector<std::int32_t> first_of_token;     // [own tokens + 1], into copies_of_token
  std::vector<std::int32_t> copies_of_token;    // [sent copies], by token, then destination rank
  // Receiving side.
  std::vector<std::int32_t> copy_of_row;        // [received rows], expert order: copy it repeats
  std::vector<std::int32_t> first_use_of_copy;  // [received copies + 1], into row_of_use
  std::vector<std::int32_t> row_of_use;         // [received rows], receive order: expert-order row

  std::int64_t num_sent_copies() const { return std::ssize(token_of_copy); }
  std::int64_t num_recv_copies() const { return std::ssize(first_use_of_copy) - 1; }
};

RankDispatch plan_rank_dispatch(const Trace& trace, const Placement& placement,
                                const std::vector<TokenRange>& tokens_of_rank, int ep_rank);

// How a use travels: the destination's local slot, and whether the use is the first of its copy.
enum class UsePlace { first_of_copy, later };
constexpr std::int32_t use_word(std::int32_t local_slot, UsePlace place) {
  return 2 * local_slot + (place == UsePlace::first_of_copy ? 1 : 0);
}

// With the assignment's router weight in fp32 behind it.
inline constexpr std::int64_t kUseBytes = 8;

// One message per pair of ranks carries the copies and, behind them, their uses, counted in
// granules: the largest power of two up to 64 bytes that a row is a multiple of. A second message
// for the uses took 14 to 27 % more time at 8 ranks (1 to 128 tokens a rank), a shared one 0 to 4
// %.
constexpr std::int64_t granule_bytes(std::int64_t row_bytes) {
  return std::gcd(row_bytes, std::int64_t{64});
}
// For the uses of one message, the last one padded.
constexpr std::int64_t use_granules(std::int64_t uses, std::int64_t granule) {
  return (uses * kUseBytes + granule - 1) / granule;
}

// The steps below are also what the timed stages run; none allocates.

// copies[rank] = how many tokens have an assignment there. slot_of_assignment as from
// assign_slots(); last_token is scratch. Both [ep_size].
void count_copies(const Placement& placement, std::span<const std::int32_t> slot_of_assignment,
                  int top_k, std::span<std::int32_t> last_token, std::span<std::int64_t> copies);

// Views of RankDispatch's source side, sized for what order_copies() fills in.
struct SendOrder {
  std::span<std::int32_t> token_of_copy, assignment_of_use, sent_uses;
  std::span<std::int32_t> first_of_token, copies_of_token;
};
// Where the next copy and use to every rank goes, and the last token that went there; [ep_size].
struct SendCursors {
  std::span<std::int64_t> next_copy, next_use;
  std::span<std::int32_t> last_token;
};
// On entry next_copy and next_use hold the copies and the assignments to every rank.
void order_copies(const Placement& placement, std::span<const std::int32_t> slot_of_assignment,
                  int top_k, const SendCursors& cursors, const SendOrder& order);

// What a rank was told to expect: copies and uses of every source, and rows of every local expert.
struct AnnouncedCopies {
  std::span<const std::int64_t> copies, uses;     // [ep_size]
  std::span<const std::int64_t> rows_per_expert;  // [num_local_experts]
};
// Views of RankDispatch's receiving side; next_row is scratch, [num_local_experts].
struct ReceiveOrder {
  std::span<std::int32_t> copy_of_row, first_use_of_copy, row_of_use;
  std::span<std::int64_t> next_row;
};
// From the uses of all sources in receive order. False if they contradict what was announced; all
// indices are then still inside their ranges, but of the wrong rows.
bool order_uses(std::span<const std::int32_t> uses, const AnnouncedCopies& announced,
                const ReceiveOrder& order);

// Why the positions of a point with exchange unit `rank` do not fit 32 bits; absent if they do, and
// for other units.
std::optional<std::string> position_refusal(const SweepPoint& point);

// Copies and uses to or from every rank; [ep_size].
struct MessageCounts {
  std::span<const std::int64_t> copies, uses;
};
// Positions in granules, from the first message's begin on.
struct MessageLayout {
  std::span<std::int64_t> granules;  // [ep_size], of each message
  std::span<std::int32_t> copy_at;   // [copies]
  std::span<std::int32_t> use_at;    // [use granules]
};
// Of messages that lie in rank order without gaps. Returns the number of use granules.
std::int64_t lay_out_messages(const MessageCounts& counts, std::int64_t row_bytes,
                              const MessageLayout& layout);

}  // namespace epsweep
