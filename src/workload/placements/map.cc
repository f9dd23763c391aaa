// Every slot as a file lists it: a placement that another program chose, such as one that is in
// service.
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "workload/placement.h"

namespace epsweep {
namespace {

std::vector<int> expert_of_slot(const PlacementContext& context) {
  return {context.listed_slots.begin(), context.listed_slots.end()};
}

std::optional<std::string> refuses(const SweepPoint& point) {
  EPS_EXPECT(point.placement_map != nullptr, "placement map without a file");
  const PlacementMap& map = *point.placement_map;
  const std::string name = std::filesystem::path(map.file).filename().string();
  if (map.ep_size > 0 && map.ep_size != point.ep_size) {
    return fmt::format("{} is a placement for ep_size {}, not {}", name, map.ep_size,
                       point.ep_size);
  }
  if (map.num_slots % point.ep_size != 0) {
    return fmt::format("{} has {} slots, not the same number for each of {} ranks", name,
                       map.num_slots, point.ep_size);
  }
  return std::nullopt;
}

const bool registered = PlacementCatalog::instance().add(
    {"map", "slots as a file lists them: {policy: map, file: PLACEMENT.yaml}", SlotRule::listed,
     FittedTo::nothing, expert_of_slot, refuses});

}  // namespace
}  // namespace epsweep
