#include "base/slot_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace epsweep {
namespace {

// next[slot]: the place of the slot's next assignment.
void take_places(std::span<const std::int32_t> slot_of_assignment, std::span<std::int64_t> next,
                 std::span<std::int32_t> position) {
  for (std::size_t a = 0; a < slot_of_assignment.size(); ++a) {
    const auto slot = static_cast<std::size_t>(slot_of_assignment[a]);
    position[a] = static_cast<std::int32_t>(next[slot]++);
  }
}

}  // namespace

void assign_slots(const SlotTable& table, std::span<const std::int32_t> expert_of_assignment,
                  std::int64_t first_token, int top_k, std::span<std::int32_t> slot_of_assignment) {
  const auto per_token = static_cast<std::size_t>(top_k);
  std::int64_t token = first_token;
  for (std::size_t begin = 0; begin < expert_of_assignment.size(); begin += per_token, ++token) {
    const std::uint64_t hash = replica_hash(token);
    for (std::size_t a = begin; a < begin + per_token; ++a) {
      slot_of_assignment[a] = table.slot_of(expert_of_assignment[a], hash);
    }
  }
}

void count_slots(std::span<const std::int32_t> slot_of_assignment, std::span<std::int64_t> counts) {
  for (const std::int32_t slot : slot_of_assignment) ++counts[static_cast<std::size_t>(slot)];
}

void sort_by_slot(std::span<const std::int32_t> slot_of_assignment, std::span<std::int64_t> counts,
                  std::span<std::int32_t> position) {
  std::exclusive_scan(counts.begin(), counts.end(), counts.begin(), std::int64_t{0});
  take_places(slot_of_assignment, counts, position);
}

void sort_by_slot(std::span<const std::int32_t> slot_of_assignment, const RankSections& sections,
                  std::span<std::int64_t> counts, std::span<std::int32_t> position) {
  for (std::size_t rank = 0; rank + 1 < sections.first_slot_of_rank.size(); ++rank) {
    const auto begin = counts.begin() + sections.first_slot_of_rank[rank];
    const auto end = counts.begin() + sections.first_slot_of_rank[rank + 1];
    std::exclusive_scan(begin, end, begin, static_cast<std::int64_t>(rank) * sections.capacity);
  }
  take_places(slot_of_assignment, counts, position);
}

void order_by_expert(std::span<const std::int64_t> recv_rows_per_slot, int num_sources,
                     int num_local_experts, std::span<std::int32_t> expert_order,
                     std::int64_t capacity) {
  const auto num_local = static_cast<std::size_t>(num_local_experts);
  // Kept between calls, so that timed iterations find it allocated by the warm-up.
  static thread_local std::vector<std::int64_t> next;
  next.assign(num_local, 0);
  for (std::size_t i = 0; i < recv_rows_per_slot.size(); ++i) {
    next[i % num_local] += recv_rows_per_slot[i];
  }
  std::exclusive_scan(next.begin(), next.end(), next.begin(), std::int64_t{0});
  std::int32_t row = 0;
  for (std::size_t source = 0; source < static_cast<std::size_t>(num_sources); ++source) {
    if (capacity > 0) row = static_cast<std::int32_t>(static_cast<std::int64_t>(source) * capacity);
    for (std::size_t local = 0; local < num_local; ++local) {
      const std::int64_t rows = recv_rows_per_slot[source * num_local + local];
      const auto begin = expert_order.begin() + static_cast<std::ptrdiff_t>(next[local]);
      std::iota(begin, begin + static_cast<std::ptrdiff_t>(rows), row);
      next[local] += rows;
      row += static_cast<std::int32_t>(rows);
    }
  }
}

}  // namespace epsweep
