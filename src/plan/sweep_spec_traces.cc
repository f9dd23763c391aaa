#include <algorithm>

#include "plan/sweep_spec_parts.h"

namespace epsweep {
namespace {

// Parameters of the distribution that the map names, if it names a known one.
std::vector<std::string> keys_of_distribution(const YamlNode& node, const Catalogs& catalogs) {
  std::vector<std::string> keys;
  for (const YamlEntry& entry : node.entries) {
    if (entry.key != "distribution") continue;
    for (const DistributionInfo& info : catalogs.distributions) {
      if (info.name != entry.value.scalar) continue;
      for (const ParamSpec& param : info.params) keys.push_back(param.name);
      if (!info.skew_param.empty()) keys.push_back(kMaxOverMean);
    }
  }
  return keys;
}

}  // namespace

TraceChoice read_trace_choice(const YamlNode& node, const std::string& file,
                              const Catalogs& catalogs) {
  const std::vector<std::string> own_keys = {"step", "seed", "tokens"};
  std::vector<std::string> keys = {"distribution"};
  keys.insert(keys.end(), own_keys.begin(), own_keys.end());
  for (const std::string& key : keys_of_distribution(node, catalogs)) keys.push_back(key);
  const MapReader map(node, keys);
  if (node.entries.empty()) {
    fail_at(node, "names no trace: distribution with its parameters, step, seed, tokens");
  }
  TraceChoice choice;
  if (const YamlNode* step = map.find("step")) choice.step = read_count(*step, 0, INT64_MAX);
  if (const YamlNode* seed = map.find("seed")) choice.seed = read_seed(*seed);
  if (const YamlNode* tokens = map.find("tokens")) {
    choice.tokens = read_count(*tokens, 1, kMaxTokens);
  }
  if (map.find("distribution") != nullptr) {
    YamlNode routing = node;
    std::erase_if(routing.entries, [&](const YamlEntry& entry) {
      return std::ranges::find(own_keys, entry.key) != own_keys.end();
    });
    choice.routing = read_routing(routing, file, catalogs);
  }
  return choice;
}

}  // namespace epsweep
