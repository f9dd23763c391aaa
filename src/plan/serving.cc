#include "plan/serving.h"

#include <cmath>

#include "plan/weight_format.h"
#include "plan/yaml_reader.h"

namespace epsweep {
namespace {

constexpr std::int64_t kMaxContext = 1'000'000'000;
constexpr double kMaxReserveGib = 1e6;
constexpr double kLeastFraction = 1e-3;

std::string read_weight_dtype(const YamlNode& node) {
  std::vector<std::string> names = weight_format_names();
  names.insert(names.begin(), kAsPublished);
  return read_choice(node, names);
}

}  // namespace

const std::vector<std::string>& serving_keys() {
  static const std::vector<std::string> keys = {
      "context_tokens",          "draft_tokens", "memory_fraction", "kv_dtype", "weight_dtype",
      "non_expert_weight_dtype", "reserve_gib"};
  return keys;
}

Serving read_serving(const YamlNode& node) {
  const MapReader map(node, serving_keys());
  Serving serving;
  if (const YamlNode* found = map.find("context_tokens")) {
    serving.context_tokens = read_count(*found, 1, kMaxContext);
  }
  if (const YamlNode* found = map.find("draft_tokens")) {
    serving.draft_tokens = static_cast<int>(read_count(*found, 0, 1024));
  }
  if (const YamlNode* found = map.find("memory_fraction")) {
    serving.memory_fraction = read_number(*found, kLeastFraction, 1);
  }
  if (const YamlNode* found = map.find("kv_dtype")) {
    serving.kv_dtype = read_enum<KvDType>(*found, kKvDTypeNames);
  }
  if (const YamlNode* found = map.find("weight_dtype")) {
    serving.weight_dtype = read_weight_dtype(*found);
  }
  if (const YamlNode* found = map.find("non_expert_weight_dtype")) {
    serving.non_expert_weight_dtype = read_weight_dtype(*found);
  }
  if (const YamlNode* found = map.find("reserve_gib")) {
    serving.reserve_bytes = std::llround(read_number(*found, 0, kMaxReserveGib) * 0x1p30);
  }
  return serving;
}

Json serving_json(const Serving& serving) {
  return {{"context_tokens", serving.context_tokens},
          {"draft_tokens", serving.draft_tokens},
          {"memory_fraction", serving.memory_fraction},
          {"kv_dtype", to_string(serving.kv_dtype)},
          {"weight_dtype", serving.weight_dtype},
          {"non_expert_weight_dtype", serving.non_expert_weight_dtype},
          {"reserve_bytes", serving.reserve_bytes}};
}

}  // namespace epsweep
