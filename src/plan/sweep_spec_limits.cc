#include "base/text.h"
#include "plan/sweep_spec_parts.h"

namespace epsweep {
namespace {

constexpr double kMostTpotMs = 1e9, kMostTokensPerS = 1e9, kMostOtherUs = 1e9;
constexpr double kFinestResolution = 1e-3;

// Where what people look for here is said.
std::string advice_for_limits_key(const std::string& key) {
  if (key == "context_tokens") {
    return "the context is that of the sequences that are served: serving.context_tokens";
  }
  if (key == "memory_reserve" || key == "reserve_gib") {
    return "memory is divided by 'serving': serving.reserve_gib";
  }
  if (key == "latency_objective_us") return "say it of a whole token: tpot_ms";
  return "";
}

Limits read_values(const MapReader& map, const ModelShape& model) {
  Limits limits;
  if (const YamlNode* node = map.find("tpot_ms")) {
    limits.tpot_ms = read_number(*node, 1e-6, kMostTpotMs);
  }
  if (const YamlNode* node = map.find("tokens_per_s_per_user")) {
    limits.tokens_per_s_per_user = read_number(*node, 1e-6, kMostTokensPerS);
  }
  if (const YamlNode* node = map.find("percentile")) {
    limits.percentile = read_enum<Percentile>(*node, kPercentileNames);
  }
  if (const YamlNode* node = map.find("other_layer_us")) {
    limits.other_layer_us = read_number(*node, 0, kMostOtherUs);
  }
  limits.layers = model.num_moe_layers;
  if (const YamlNode* node = map.find("layers")) {
    limits.layers = static_cast<int>(read_count(*node, 1, kMaxModelLayers));
  }
  if (const YamlNode* node = map.find("resolution")) {
    limits.resolution = read_number(*node, kFinestResolution, 1);
  }
  return limits;
}

std::vector<std::string> contradictions(const Limits& limits, const SweepSpec& spec) {
  std::vector<std::string> found;
  if (limits.tpot_ms && limits.tokens_per_s_per_user) {
    found.push_back("tpot_ms and tokens_per_s_per_user are one objective said twice: keep one");
  }
  if (spec.latency_objective_us) {
    found.push_back("latency_objective_us is an objective beside 'limits': say it as tpot_ms");
  }
  if (const int fewest = fewest_samples(limits.percentile); spec.iterations < fewest) {
    found.push_back(fmt::format("percentile {} needs iterations: {} or more, there are {}",
                                to_string(limits.percentile), fewest, spec.iterations));
  }
  if (const auto layer_s = layer_objective_s(limits); layer_s && *layer_s <= 0) {
    found.push_back(fmt::format(
        "{} layers of other_layer_us {} take {} ms, which leaves nothing of a TPOT of {} ms",
        limits.layers, limits.other_layer_us, limits.layers * limits.other_layer_us * 1e-3,
        *limits.objective_s() * 1e3));
  }
  return found;
}

}  // namespace

void read_limits(const MapReader& top, SweepSpec& spec) {
  const YamlNode* node = top.find("limits");
  if (node == nullptr) return;
  const Limits limits =
      read_values(MapReader(*node, limits_keys(), advice_for_limits_key), spec.model);
  const std::vector<std::string> found = contradictions(limits, spec);
  if (!found.empty()) fail_at(*node, join(found, "; "));
  spec.limits = limits;
}

}  // namespace epsweep
