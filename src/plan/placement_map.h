// A placement that a file lists slot by slot, in the YAML form that TensorRT-LLM's expert-parallel
// load balancer reads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace epsweep {

// Layer l of a sweep is the l-th of the file's layers by number: files number a model's layers, and
// dense ones are not in them.
struct PlacementMap {
  std::string file;
  std::string file_checksum;  // of its content: what makes two maps different
  int num_slots = 0;
  int ep_size = 0;                               // that it was made for; 0 where it is not said
  std::vector<int> layer_numbers;                // [layers], ascending
  std::vector<std::vector<int>> expert_of_slot;  // [layers][num_slots]

  int num_layers() const { return static_cast<int>(layer_numbers.size()); }
  std::span<const int> slots_of_layer(int layer) const {
    return expert_of_slot.at(static_cast<std::size_t>(layer));
  }
  std::string label() const;  // "my_map.yaml 1234abcd"
};

// Keys: num_slots; initial_global_assignments, a map of layer number to the expert of every slot;
// layer_updates_per_iter, only 0 (static); ep_size, optional. Ranks hold consecutive blocks of
// num_slots / ep_size slots. Throws ConfigError for unknown keys, lists of another length, experts
// that a model of `num_experts` does not have, experts without a slot, and slots that ep_size does
// not divide.
PlacementMap parse_placement_map(std::string_view text, const std::string& file, int num_experts);

// Throws ConfigError naming the layers it has, where a sweep of `num_layers` needs more.
void check_map_layers(const PlacementMap& map, int num_layers);

// Name and checksum; null for no map.
Json placement_map_json(const std::shared_ptr<const PlacementMap>& map);

}  // namespace epsweep
