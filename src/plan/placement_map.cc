#include "plan/placement_map.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "plan/yaml_reader.h"

namespace epsweep {
namespace {

constexpr std::int64_t kMaxSlots = 1'000'000;
constexpr std::int64_t kMaxEpSize = 65'536;

// The model's layer that an entry is about.
int layer_number(const YamlEntry& entry) {
  int number = 0;
  const char* end = entry.key.data() + entry.key.size();
  const auto [rest, error] = std::from_chars(entry.key.data(), end, number);
  if (error != std::errc() || rest != end || number < 0) {
    fail_at(entry.value, fmt::format("'{}' is not the number of a layer", entry.key));
  }
  return number;
}

std::vector<int> read_slots(const YamlNode& node, int num_slots, int num_experts) {
  if (node.kind != YamlNode::Kind::list) fail_at(node, "expected a list: the expert of every slot");
  if (node.items.size() != static_cast<std::size_t>(num_slots)) {
    fail_at(node, fmt::format("lists {} slots, num_slots is {}", node.items.size(), num_slots));
  }
  std::vector<int> experts;
  std::vector<bool> placed(static_cast<std::size_t>(num_experts));
  for (const YamlNode& item : node.items) {
    const auto expert = static_cast<int>(read_count(item, 0, num_experts - 1));
    experts.push_back(expert);
    placed[static_cast<std::size_t>(expert)] = true;
  }
  std::vector<int> forgotten;
  for (int expert = 0; expert < num_experts; ++expert) {
    if (!placed[static_cast<std::size_t>(expert)]) forgotten.push_back(expert);
  }
  if (!forgotten.empty()) {
    constexpr std::size_t kShown = 8;
    const std::size_t num = forgotten.size();
    forgotten.resize(std::min(num, kShown));
    fail_at(node, fmt::format("{} of {} experts have no slot: {}{}", num, num_experts,
                              join(forgotten), num > kShown ? ", ..." : ""));
  }
  return experts;
}

void read_layers(const YamlNode& node, int num_experts, PlacementMap& map) {
  if (node.kind != YamlNode::Kind::map || node.entries.empty()) {
    fail_at(node, "expected a map of layer number to the expert of every slot");
  }
  std::map<int, const YamlEntry*> by_number;
  for (const YamlEntry& entry : node.entries) {
    const auto [found, is_new] = by_number.emplace(layer_number(entry), &entry);
    if (!is_new) {
      fail_at(entry.value,
              fmt::format("layer {} already stands on line {}", found->first, found->second->line));
    }
  }
  for (const auto& [number, entry] : by_number) {
    map.layer_numbers.push_back(number);
    map.expert_of_slot.push_back(read_slots(entry->value, map.num_slots, num_experts));
  }
}

}  // namespace

std::string PlacementMap::label() const {
  return fmt::format("{} {}", std::filesystem::path(file).filename().string(),
                     file_checksum.substr(0, 8));
}

PlacementMap parse_placement_map(std::string_view text, const std::string& file, int num_experts) {
  const YamlNode root = parse_yaml(text, file);
  const MapReader top(
      root, {"num_slots", "initial_global_assignments", "layer_updates_per_iter", "ep_size"});
  PlacementMap map;
  map.file = file;
  map.file_checksum = text_checksum(text);
  const YamlNode& num_slots = top.require("num_slots");
  map.num_slots = static_cast<int>(read_count(num_slots, 1, kMaxSlots));
  if (map.num_slots < num_experts) {
    fail_at(num_slots, fmt::format("{} slots are fewer than the model's {} experts", map.num_slots,
                                   num_experts));
  }
  if (const YamlNode* updates = top.find("layer_updates_per_iter")) {
    if (const std::int64_t per_iter = read_count(*updates, 0, kMaxSlots); per_iter != 0) {
      fail_at(*updates,
              fmt::format("{} asks for a placement that changes while it is measured; only a "
                          "static one is compared with others: 0",
                          per_iter));
    }
  }
  if (const YamlNode* ep_size = top.find("ep_size")) {
    map.ep_size = static_cast<int>(read_count(*ep_size, 1, kMaxEpSize));
    if (map.num_slots % map.ep_size != 0) {
      fail_at(*ep_size,
              fmt::format("num_slots {} is not divisible by {}", map.num_slots, map.ep_size));
    }
  }
  read_layers(top.require("initial_global_assignments"), num_experts, map);
  return map;
}

void check_map_layers(const PlacementMap& map, int num_layers) {
  if (map.num_layers() >= num_layers) return;
  throw ConfigError(fmt::format(
      "{}: places {} layers ({}), the sweep has {}: its layer {} (from 0) is missing", map.file,
      map.num_layers(), join(map.layer_numbers), num_layers, map.num_layers()));
}

Json placement_map_json(const std::shared_ptr<const PlacementMap>& map) {
  if (map == nullptr) return nullptr;
  return {{"file", std::filesystem::path(map->file).filename().string()},
          {"file_checksum", map->file_checksum}};
}

}  // namespace epsweep
