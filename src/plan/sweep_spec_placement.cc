#include <algorithm>

#include "base/text.h"
#include "plan/sweep_spec_parts.h"

namespace epsweep {
namespace {

constexpr std::int64_t kMaxRedundantSlots = 1'000'000;

}  // namespace

std::vector<PlacementChoice> read_placements(const MapReader& top,
                                             const std::vector<PlacementInfo>& known) {
  std::vector<std::string> names, replicating, chosen = {"contiguous"};
  for (const PlacementInfo& info : known) {
    names.push_back(info.name);
    if (info.slot_rule == SlotRule::equal_per_rank) replicating.push_back(info.name);
  }
  if (const YamlNode* node = top.find("placement")) chosen = read_names(*node, names);
  const auto replicates = [&](const std::string& name) {
    return std::ranges::find(replicating, name) != replicating.end();
  };
  std::vector<int> counts = {0};
  if (const YamlNode* node = top.find("redundant_slots")) {
    counts.clear();
    for (const YamlNode* item : read_items(*node)) {
      counts.push_back(static_cast<int>(read_count(*item, 0, kMaxRedundantSlots)));
      if (counts.back() == 0 || std::ranges::any_of(chosen, replicates)) continue;
      fail_at(*item, fmt::format("placement {} has no replicas; those that have: {}", join(chosen),
                                 join(replicating)));
    }
    refuse_repeats(*node, counts, [](int count) { return std::to_string(count); });
  }
  std::vector<PlacementChoice> choices;
  for (const std::string& name : chosen) {
    for (const int count : replicates(name) ? counts : std::vector{0}) {
      choices.push_back({.name = name, .redundant_slots = count});
    }
  }
  return choices;
}

}  // namespace epsweep
