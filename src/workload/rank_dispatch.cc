#include "workload/rank_dispatch.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep {
namespace {

struct SourcePart {
  std::vector<std::int64_t> copies, rows;  // to every rank
  std::vector<std::int32_t> slots;         // of the source's assignments
};

SourcePart part_of(const Trace& trace, const Placement& placement, TokenRange tokens) {
  const auto ranks = static_cast<std::size_t>(placement.ep_size);
  const auto begin = static_cast<std::size_t>(tokens.begin * trace.top_k);
  const auto count = static_cast<std::size_t>(tokens.size() * trace.top_k);
  SourcePart part{.copies = std::vector<std::int64_t>(ranks),
                  .rows = std::vector<std::int64_t>(ranks),
                  .slots = std::vector<std::int32_t>(count)};
  std::vector<std::int32_t> last_token(ranks);
  assign_slots(placement.slot_table(), std::span(trace.experts).subspan(begin, count), tokens.begin,
               trace.top_k, part.slots);
  count_copies(placement, part.slots, trace.top_k, last_token, part.copies);
  for (const std::int32_t slot : part.slots) {
    ++part.rows[static_cast<std::size_t>(placement.rank_of_slot[static_cast<std::size_t>(slot)])];
  }
  return part;
}

// Puts a source's copies and uses into send order, for all destinations.
void order_source(const Placement& placement, int top_k, const SourcePart& part,
                  RankDispatch& plan) {
  const std::size_t tokens = top_k == 0 ? 0 : part.slots.size() / static_cast<std::size_t>(top_k);
  const auto copies = static_cast<std::size_t>(
      std::accumulate(part.copies.begin(), part.copies.end(), std::int64_t{0}));
  plan.send_copies = part.copies;
  plan.token_of_copy.resize(copies);
  plan.copies_of_token.resize(copies);
  plan.first_of_token.resize(tokens + 1);
  plan.assignment_of_use.resize(part.slots.size());
  plan.sent_uses.resize(part.slots.size());
  std::vector<std::int64_t> next_copy = part.copies, next_use = part.rows;
  std::vector<std::int32_t> last_token(part.copies.size());
  order_copies(placement, part.slots, top_k,
               {.next_copy = next_copy, .next_use = next_use, .last_token = last_token},
               {.token_of_copy = plan.token_of_copy,
                .assignment_of_use = plan.assignment_of_use,
                .sent_uses = plan.sent_uses,
                .first_of_token = plan.first_of_token,
                .copies_of_token = plan.copies_of_token});
}

// What every source sends to `ep_rank`, worked out from its routing and put into expert order.
void plan_receive(const Trace& trace, const Placement& placement,
                  const std::vector<TokenRange>& tokens_of_rank, int ep_rank, RankDispatch& plan) {
  const auto rank = static_cast<std::size_t>(ep_rank);
  std::vector<std::int32_t> uses;
  std::vector<std::int64_t> uses_of_source;
  std::vector<std::int64_t> rows_per_expert(placement.experts_of_rank[rank].size());
  for (const TokenRange tokens : tokens_of_rank) {
    const SourcePart part = part_of(trace, placement, tokens);
    RankDispatch sent;
    order_source(placement, trace.top_k, part, sent);
    const auto begin = sent.sent_uses.begin() +
                       static_cast<std::ptrdiff_t>(std::accumulate(
                           part.rows.begin(), part.rows.begin() + ep_rank, std::int64_t{0}));
    uses.insert(uses.end(), begin, begin + static_cast<std::ptrdiff_t>(part.rows[rank]));
    uses_of_source.push_back(part.rows[rank]);
    plan.recv_copies.push_back(part.copies[rank]);
  }
  for (const std::int32_t word : uses) ++rows_per_expert[static_cast<std::size_t>(word / 2)];
  const std::int64_t copies =
      std::accumulate(plan.recv_copies.begin(), plan.recv_copies.end(), std::int64_t{0});
  plan.copy_of_row.resize(uses.size());
  plan.row_of_use.resize(uses.size());
  plan.first_use_of_copy.resize(static_cast<std::size_t>(copies) + 1);
  std::vector<std::int64_t> next_row(rows_per_expert.size());
  const bool fits = order_uses(
      uses,
      {.copies = plan.recv_copies, .uses = uses_of_source, .rows_per_expert = rows_per_expert},
      {.copy_of_row = plan.copy_of_row,
       .first_use_of_copy = plan.first_use_of_copy,
       .row_of_use = plan.row_of_use,
       .next_row = next_row});
  EPS_EXPECT(fits, "planned uses contradict planned counts");
}

// Puts uses in their places one by one. What does not fit is noted and left out, so that a damaged
// message can neither be overlooked nor lead outside the arrays.
struct UseSorter {
  const AnnouncedCopies& announced;
  const ReceiveOrder& order;
  std::int64_t copy = -1;     // the one that uses belong to
  std::int64_t end_copy = 0;  // of the current source
  bool fits = true;

  static bool is_first(std::int32_t word) { return word >= 0 && word % 2 == 1; }

  void begin_copy(std::size_t use, std::int32_t word) {
    fits = fits && is_first(word) && copy + 1 < end_copy;
    if (copy + 1 < end_copy) {
      order.first_use_of_copy[static_cast<std::size_t>(++copy)] = static_cast<std::int32_t>(use);
    }
  }

  void place(std::size_t use, std::int32_t word) {
    order.row_of_use[use] = 0;
    const auto slot = static_cast<std::size_t>(word / 2);
    const bool sound = word >= 0 && slot < announced.rows_per_expert.size() && copy >= 0;
    fits = fits && sound;
    if (!sound) return;
    const std::int64_t row = order.next_row[slot]++;
    if (row >= std::ssize(order.copy_of_row)) return;
    order.copy_of_row[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(copy);
    order.row_of_use[use] = static_cast<std::int32_t>(row);
  }

  // Closes the source's copies, those without a use too, which no sound message has.
  void end_source(std::size_t end_use) {
    fits = fits && copy + 1 == end_copy;
    while (copy + 1 < end_copy) {
      order.first_use_of_copy[static_cast<std::size_t>(++copy)] =
          static_cast<std::int32_t>(end_use);
    }
    order.first_use_of_copy[static_cast<std::size_t>(end_copy)] =
        static_cast<std::int32_t>(end_use);
  }

  bool rows_are_as_announced() const {
    std::int64_t end_row = 0;
    for (std::size_t slot = 0; slot < announced.rows_per_expert.size(); ++slot) {
      end_row += announced.rows_per_expert[slot];
      if (order.next_row[slot] != end_row) return false;
    }
    return true;
  }
};

}  // namespace

RankDispatch plan_rank_dispatch(const Trace& trace, const Placement& placement,
                                const std::vector<TokenRange>& tokens_of_rank, int ep_rank) {
  EPS_EXPECT(ep_rank >= 0 && ep_rank < placement.ep_size, "no such EP rank");
  EPS_EXPECT(tokens_of_rank.size() == static_cast<std::size_t>(placement.ep_size),
             "token ranges and placement are of different EP sizes");
  EPS_EXPECT(tokens_of_rank.back().end == trace.num_tokens, "token ranges miss the trace");
  EPS_EXPECT(trace.experts.size() <= INT32_MAX && placement.num_slots() <= INT32_MAX / 2,
             "more assignments or slots than 32-bit numbers reach");
  RankDispatch plan;
  order_source(placement, trace.top_k,
               part_of(trace, placement, tokens_of_rank[static_cast<std::size_t>(ep_rank)]), plan);
  plan_receive(trace, placement, tokens_of_rank, ep_rank, plan);
  return plan;
}

void count_copies(const Placement& placement, std::span<const std::int32_t> slot_of_assignment,
                  int top_k, std::span<std::int32_t> last_token, std::span<std::int64_t> copies) {
  std::ranges::fill(copies, 0);
  std::ranges::fill(last_token, -1);
  const auto per_token = static_cast<std::size_t>(top_k);
  std::int32_t token = 0;
  for (std::size_t begin = 0; begin < slot_of_assignment.size(); begin += per_token, ++token) {
    for (const std::int32_t slot : slot_of_assignment.subspan(begin, per_token)) {
      const auto rank =
          static_cast<std::size_t>(placement.rank_of_slot[static_cast<std::size_t>(slot)]);
      if (last_token[rank] == token) continue;
      last_token[rank] = token;
      ++copies[rank];
    }
  }
}

void order_copies(const Placement& placement, std::span<const std::int32_t> slot_of_assignment,
                  int top_k, const SendCursors& cursors, const SendOrder& order) {
  const auto [next_copy, next_use, last_token] = cursors;
  std::exclusive_scan(next_copy.begin(), next_copy.end(), next_copy.begin(), std::int64_t{0});
  std::exclusive_scan(next_use.begin(), next_use.end(), next_use.begin(), std::int64_t{0});
  std::ranges::fill(last_token, -1);
  const auto per_token = static_cast<std::size_t>(top_k);
  std::size_t num_copies = 0;
  std::int32_t token = 0;
  for (std::size_t a = 0; a < slot_of_assignment.size(); ++token) {
    order.first_of_token[static_cast<std::size_t>(token)] = static_cast<std::int32_t>(num_copies);
    const std::size_t first_copy = num_copies;
    for (const std::size_t end = a + per_token; a < end; ++a) {
      const std::int32_t slot = slot_of_assignment[a];
      const auto rank =
          static_cast<std::size_t>(placement.rank_of_slot[static_cast<std::size_t>(slot)]);
      UsePlace place = UsePlace::later;
      if (last_token[rank] != token) {
        last_token[rank] = token;
        place = UsePlace::first_of_copy;
        const std::int64_t copy = next_copy[rank]++;
        order.token_of_copy[static_cast<std::size_t>(copy)] = token;
        order.copies_of_token[num_copies++] = static_cast<std::int32_t>(copy);
      }
      const auto use = static_cast<std::size_t>(next_use[rank]++);
      order.sent_uses[use] = use_word(slot - placement.first_slot_of_rank[rank], place);
      order.assignment_of_use[use] = static_cast<std::int32_t>(a);
    }
    // Copies are numbered by destination rank.
    std::ranges::sort(order.copies_of_token.subspan(first_copy, num_copies - first_copy));
  }
  order.first_of_token[static_cast<std::size_t>(token)] = static_cast<std::int32_t>(num_copies);
}

bool order_uses(std::span<const std::int32_t> uses, const AnnouncedCopies& announced,
                const ReceiveOrder& order) {
  UseSorter sorter{.announced = announced, .order = order};
  std::exclusive_scan(announced.rows_per_expert.begin(), announced.rows_per_expert.end(),
                      order.next_row.begin(), std::int64_t{0});
  std::ranges::fill(order.copy_of_row, 0);
  std::size_t use = 0;
  for (std::size_t source = 0; source < announced.copies.size(); ++source) {
    const std::size_t begin = use, end = use + static_cast<std::size_t>(announced.uses[source]);
    sorter.end_copy += announced.copies[source];
    for (; use < end; ++use) {
      if (sorter.is_first(uses[use]) || use == begin) sorter.begin_copy(use, uses[use]);
      sorter.place(use, uses[use]);
    }
    sorter.end_source(use);
  }
  return sorter.fits && sorter.rows_are_as_announced();
}

std::optional<std::string> position_refusal(const SweepPoint& point) {
  if (point.exchange_unit != ExchangeUnit::rank) return std::nullopt;
  const std::int64_t row_bytes = point.model.expert_io_dim * bytes_of(row_dtype(point.dtype));
  const std::int64_t granule = granule_bytes(row_bytes), tokens = point.tokens_global();
  std::int64_t copies = tokens;  // one rank may receive every token
  for (const TokenRange own : token_ranges(point)) {
    copies = std::max(copies, own.size() * std::min(point.model.top_k, point.ep_size));
  }
  const std::int64_t granules = copies * (row_bytes / granule) +
                                use_granules(tokens * point.model.top_k, granule) + point.ep_size;
  if (granules <= INT32_MAX) return std::nullopt;
  return fmt::format(
      "exchange_unit rank: {} copies of {} bytes are up to {} positions of {} bytes, more than "
      "2^31-1",
      copies, row_bytes, granules, granule);
}

std::int64_t lay_out_messages(const MessageCounts& counts, std::int64_t row_bytes,
                              const MessageLayout& layout) {
  const std::int64_t granule = granule_bytes(row_bytes), per_row = row_bytes / granule;
  std::int64_t at = 0;
  std::size_t copy = 0, use_granule = 0;
  for (std::size_t rank = 0; rank < counts.copies.size(); ++rank) {
    const std::int64_t begin = at;
    for (std::int64_t i = 0; i < counts.copies[rank]; ++i, at += per_row) {
      layout.copy_at[copy++] = static_cast<std::int32_t>(at);
    }
    for (std::int64_t i = use_granules(counts.uses[rank], granule); i > 0; --i, ++at) {
      layout.use_at[use_granule++] = static_cast<std::int32_t>(at);
    }
    layout.granules[rank] = at - begin;
  }
  return static_cast<std::int64_t>(use_granule);
}

}  // namespace epsweep
