#include "workload/placement.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "plan/plan.h"

namespace epsweep {
namespace {

void deal_slots(Placement& placement) {
  placement.first_slot_of_rank = {0};
  auto slot = placement.expert_of_slot.begin();
  int rank = 0;
  for (const std::int64_t share : near_equal_split(placement.num_slots(), placement.ep_size)) {
    placement.experts_of_rank.emplace_back(slot, slot + share);
    placement.rank_of_slot.insert(placement.rank_of_slot.end(), static_cast<std::size_t>(share),
                                  rank++);
    slot += share;
    placement.first_slot_of_rank.push_back(
        static_cast<int>(slot - placement.expert_of_slot.begin()));
  }
}

void index_by_expert(Placement& placement) {
  placement.first_of_expert.assign(static_cast<std::size_t>(placement.num_experts) + 1, 0);
  for (const int expert : placement.expert_of_slot) {
    ++placement.first_of_expert[static_cast<std::size_t>(expert) + 1];
  }
  std::partial_sum(placement.first_of_expert.begin(), placement.first_of_expert.end(),
                   placement.first_of_expert.begin());
  placement.slots_by_expert.resize(placement.expert_of_slot.size());
  std::iota(placement.slots_by_expert.begin(), placement.slots_by_expert.end(), 0);
  std::ranges::stable_sort(placement.slots_by_expert, {}, [&placement](std::int32_t slot) {
    return placement.expert_of_slot[static_cast<std::size_t>(slot)];
  });
}

// "4 is the smallest number that does", with the next one above what was asked for.
std::string valid_redundancy(std::int64_t num_experts, int ep_size, std::int64_t asked) {
  const auto at_least = [=](std::int64_t redundant) {
    return redundant + (ep_size - (num_experts + redundant) % ep_size) % ep_size;
  };
  const std::int64_t smallest = at_least(0);
  if (at_least(asked) == smallest) return fmt::format("the smallest that is: {}", smallest);
  return fmt::format("the smallest that is: {}, the next above: {}", smallest, at_least(asked));
}

}  // namespace

Placement make_placement(const std::string& name, const PlacementContext& context) {
  EPS_EXPECT(context.num_experts >= 1 && context.ep_size >= 1 && context.redundant_slots >= 0,
             "placement of no experts or on no ranks");
  const PlacementEntry& entry = PlacementCatalog::instance().at(name);
  EPS_EXPECT(
      entry.slot_rule == SlotRule::one_per_expert || context.num_slots() % context.ep_size == 0,
      "placement " + name + " cannot give all ranks the same number of slots");
  Placement placement;
  placement.num_experts = context.num_experts;
  placement.ep_size = context.ep_size;
  placement.expert_of_slot = entry.expert_of_slot(context);
  EPS_EXPECT(placement.num_slots() == context.num_slots(),
             "placement " + name + " fills another number of slots");
  std::vector<bool> placed(static_cast<std::size_t>(context.num_experts));
  for (const int expert : placement.expert_of_slot) {
    EPS_EXPECT(expert >= 0 && expert < context.num_experts,
               "placement " + name + " invented an expert");
    placed[static_cast<std::size_t>(expert)] = true;
  }
  EPS_EXPECT(std::ranges::count(placed, false) == 0, "placement " + name + " forgot an expert");
  deal_slots(placement);
  index_by_expert(placement);
  return placement;
}

Placement place_experts(const SweepPoint& point, int layer,
                        std::span<const std::int64_t> rows_per_expert) {
  PlacementContext context = {.num_experts = point.model.num_experts,
                              .ep_size = point.ep_size,
                              .redundant_slots = point.redundant_slots,
                              .seed = point.seed,
                              .layer = layer,
                              .rows_per_expert = rows_per_expert,
                              .num_expert_groups = point.model.router.num_groups};
  if (point.placement_map != nullptr) {
    context.listed_slots = point.placement_map->slots_of_layer(layer);
  }
  const std::optional<GroupPlaces> places = declared_places(point);
  if (places.has_value()) context.host_of_rank = places->host_of_rank;
  return make_placement(point.placement, context);
}

std::uint64_t placement_checksum(const std::vector<Placement>& layers) {
  Fingerprint fingerprint;
  for (const Placement& placement : layers) {
    fingerprint.add(static_cast<std::uint64_t>(placement.ep_size));
    for (const int expert : placement.expert_of_slot) {
      fingerprint.add(static_cast<std::uint64_t>(expert));
    }
  }
  return fingerprint.value();
}

std::optional<std::string> slot_refusal(const SweepPoint& point) {
  const PlacementEntry& entry = PlacementCatalog::instance().at(point.placement);
  const std::int64_t num_experts = point.model.num_experts, redundant = point.redundant_slots;
  if (entry.refuses != nullptr) {
    if (auto reason = entry.refuses(point)) return reason;
  }
  if (entry.slot_rule == SlotRule::listed) return std::nullopt;
  if (entry.slot_rule == SlotRule::one_per_expert) {
    if (redundant == 0) return std::nullopt;
    return fmt::format("placement {} has no replicas: redundant_slots must be 0, not {}",
                       entry.name, redundant);
  }
  if ((num_experts + redundant) % point.ep_size != 0) {
    return fmt::format(
        "placement {} wants as many slots on every rank: {} experts + redundant_slots {} are not "
        "divisible by ep_size {}; {}",
        entry.name, num_experts, redundant, point.ep_size,
        valid_redundancy(num_experts, point.ep_size, redundant));
  }
  if (redundant > num_experts * (point.ep_size - 1)) {
    return fmt::format(
        "redundant_slots {} would put an expert twice on one rank: {} already give every one of "
        "{} ranks all {} experts",
        redundant, num_experts * (point.ep_size - 1), point.ep_size, num_experts);
  }
  return std::nullopt;
}

std::vector<std::int64_t> rows_per_slot(const Placement& placement, const Trace& trace) {
  EPS_EXPECT(placement.num_experts == trace.num_experts,
             "placement and trace are of different models");
  std::vector<std::int64_t> rows(placement.expert_of_slot.size(), 0);
  for (std::int64_t token = 0; token < trace.num_tokens; ++token) {
    for (const std::int32_t expert : trace.of_token(token)) {
      ++rows[static_cast<std::size_t>(placement.slot_of(expert, token))];
    }
  }
  return rows;
}

std::vector<std::int64_t> rows_per_slot(const Placement& placement,
                                        const std::vector<std::int64_t>& rows_per_expert) {
  EPS_EXPECT(rows_per_expert.size() == static_cast<std::size_t>(placement.num_experts),
             "another number of row counts than experts");
  EPS_EXPECT(placement.num_slots() == placement.num_experts,
             "rows of an expert with replicas say nothing about one slot");
  std::vector<std::int64_t> rows;
  for (const int expert : placement.expert_of_slot) {
    rows.push_back(rows_per_expert[static_cast<std::size_t>(expert)]);
  }
  return rows;
}

std::vector<std::int64_t> sum_by_rank(const Placement& placement,
                                      const std::vector<std::int64_t>& rows_per_slot) {
  EPS_EXPECT(rows_per_slot.size() == placement.expert_of_slot.size(),
             "another number of row counts than slots");
  std::vector<std::int64_t> rows(static_cast<std::size_t>(placement.ep_size), 0);
  for (std::size_t slot = 0; slot < rows_per_slot.size(); ++slot) {
    rows[static_cast<std::size_t>(placement.rank_of_slot[slot])] += rows_per_slot[slot];
  }
  return rows;
}

std::vector<std::int64_t> rows_per_rank(const Placement& placement,
                                        const std::vector<std::int64_t>& rows_per_expert) {
  return sum_by_rank(placement, rows_per_slot(placement, rows_per_expert));
}

}  // namespace epsweep
