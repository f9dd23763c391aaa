// Which slot serves an assignment, and the counting sorts that put rows into send and expert order:
// one rule for plans and for every backend's timed stages.
#pragma once

#include <cstdint>
#include <span>

#include "base/replica_choice.h"

namespace epsweep {

// slots_by_expert[first_of_expert[e] .. first_of_expert[e + 1]) are the slots of expert e.
struct SlotTable {
  std::span<const std::int32_t> first_of_expert;  // [num_experts + 1]
  std::span<const std::int32_t> slots_by_expert;  // [num_slots]

  std::int32_t slot_of(std::int32_t expert, std::uint64_t hash) const {
    const auto at = static_cast<std::size_t>(expert);
    const auto begin = static_cast<std::uint64_t>(first_of_expert[at]);
    const std::uint64_t replicas = static_cast<std::uint64_t>(first_of_expert[at + 1]) - begin;
    return slots_by_expert[begin + (replicas == 1 ? 0 : chosen_replica(hash, replicas))];
  }
};

// slot_of_assignment[a] = the slot that serves assignment a of tokens first_token, first_token + 1,
// ... of the group's C, top_k of each.
void assign_slots(const SlotTable& table, std::span<const std::int32_t> expert_of_assignment,
                  std::int64_t first_token, int top_k, std::span<std::int32_t> slot_of_assignment);
// The two halves of a counting sort of assignments by slot.
// counts[slot] = how many assignments go there; counts must be zeroed, one entry per slot.
void count_slots(std::span<const std::int32_t> slot_of_assignment, std::span<std::int64_t> counts);
// position[a] = row of assignment a in send order; stable. counts as from count_slots() on entry,
// destroyed.
void sort_by_slot(std::span<const std::int32_t> slot_of_assignment, std::span<std::int64_t> counts,
                  std::span<std::int32_t> position);
// Where rows lie in a buffer with a section of `capacity` rows for every destination rank.
struct RankSections {
  std::int64_t capacity = 0;
  std::span<const std::int32_t> first_slot_of_rank;  // [ranks + 1]
};
// The same with every rank's rows at the begin of its section, for counts that fit the sections.
void sort_by_slot(std::span<const std::int32_t> slot_of_assignment, const RankSections& sections,
                  std::span<std::int64_t> counts, std::span<std::int32_t> position);
// Row i in expert order (local expert, then source) is row expert_order[i] in receive order
// (source, then local expert), for the counts a rank received: [num_sources][num_local_experts].
// Rows of every source begin at a multiple of `capacity` rows; 0: without gaps.
void order_by_expert(std::span<const std::int64_t> recv_rows_per_slot, int num_sources,
                     int num_local_experts, std::span<std::int32_t> expert_order,
                     std::int64_t capacity = 0);

}  // namespace epsweep
