// Which expert sits in which slot, and which slots each EP rank holds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/registry.h"
#include "base/slot_order.h"
#include "plan/catalogs.h"
#include "plan/sweep_point.h"
#include "workload/trace.h"

namespace epsweep {

// A slot is a physical place for one expert's weights. Slots are numbered by rank, so that slot
// order is send order; an expert in several slots has replicas.
struct Placement {
  int num_experts = 0;
  int ep_size = 0;
  std::vector<int> expert_of_slot;                // [num_slots]
  std::vector<int> rank_of_slot;                  // [num_slots]
  std::vector<int> first_slot_of_rank;            // [ep_size + 1]
  std::vector<std::vector<int>> experts_of_rank;  // [ep_size], by local slot; may be empty
  std::vector<std::int32_t> slots_by_expert;      // [num_slots], ascending within an expert
  std::vector<std::int32_t> first_of_expert;      // [num_experts + 1], into slots_by_expert

  int num_slots() const { return static_cast<int>(expert_of_slot.size()); }

  std::span<const std::int32_t> slots_of_expert(std::int32_t expert) const {
    const auto at = static_cast<std::size_t>(expert);
    const auto begin = static_cast<std::size_t>(first_of_expert[at]);
    const auto end = static_cast<std::size_t>(first_of_expert[at + 1]);
    return std::span(slots_by_expert).subspan(begin, end - begin);
  }

  SlotTable slot_table() const { return {first_of_expert, slots_by_expert}; }
  // The slot that serves a token of the group's C.
  std::int32_t slot_of(std::int32_t expert, std::int64_t token) const {
    return slot_table().slot_of(expert, replica_hash(token));
  }
  int rank_of(std::int32_t expert, std::int64_t token) const {
    return rank_of_slot[static_cast<std::size_t>(slot_of(expert, token))];
  }
};

// What a placement may depend on.
struct PlacementContext {
  int num_experts = 0;
  int ep_size = 0;
  int redundant_slots = 0;
  std::uint64_t seed = 0;
  int layer = 0;
  // Of the routing it is fitted to; empty where nothing is known.
  std::span<const std::int64_t> rows_per_expert = {};
  int num_expert_groups = 1;
  // Of each EP rank: [ep_size], hosts numbered from 0 by first appearance; empty for one host.
  std::span<const int> host_of_rank = {};
  // The expert in every slot, of placements that a file lists; empty for others.
  std::span<const int> listed_slots = {};

  int num_slots() const { return num_experts + redundant_slots; }
};

struct PlacementEntry {
  std::string name;
  std::string summary;
  SlotRule slot_rule = SlotRule::one_per_expert;
  FittedTo fitted_to = FittedTo::nothing;
  // The expert in every slot: [num_slots]. Slots are dealt to ranks in near-equal consecutive
  // shares, larger ones first.
  std::vector<int> (*expert_of_slot)(const PlacementContext& context) = nullptr;
  // Why it cannot place the point's experts, beyond what its slot rule says; null for never.
  std::optional<std::string> (*refuses)(const SweepPoint& point) = nullptr;
};

using PlacementCatalog = Registry<PlacementEntry>;

// Every expert has a slot, and slot counts of ranks differ by at most one; ranks beyond the slots
// have none.
Placement make_placement(const std::string& name, const PlacementContext& context);
// The point's placement in one layer. `rows_per_expert`: rows_to_fit() of the layer. Hosts are the
// declared ones of the first group; all groups of a launch are placed alike.
Placement place_experts(const SweepPoint& point, int layer,
                        std::span<const std::int64_t> rows_per_expert);

// Equal for equal placements of all layers.
std::uint64_t placement_checksum(const std::vector<Placement>& layers);

// Why the point's slots cannot be dealt to its ranks; absent if they can.
std::optional<std::string> slot_refusal(const SweepPoint& point);
// Rows that reach each slot: [num_slots].
std::vector<std::int64_t> rows_per_slot(const Placement& placement, const Trace& trace);
// The same where no expert has replicas, so that its rows need no tokens to be dealt.
std::vector<std::int64_t> rows_per_slot(const Placement& placement,
                                        const std::vector<std::int64_t>& rows_per_expert);
// Rows that land on each EP rank: [ep_size].
std::vector<std::int64_t> sum_by_rank(const Placement& placement,
                                      const std::vector<std::int64_t>& rows_per_slot);
// The same where no expert has replicas.
std::vector<std::int64_t> rows_per_rank(const Placement& placement,
                                        const std::vector<std::int64_t>& rows_per_expert);

}  // namespace epsweep
