#include <algorithm>
#include <optional>

#include "base/text.h"
#include "plan/sweep_spec_parts.h"

namespace epsweep {
namespace {

std::vector<std::string> distribution_names(const Catalogs& catalogs) {
  std::vector<std::string> names;
  for (const DistributionInfo& info : catalogs.distributions) names.push_back(info.name);
  return names;
}

double read_param(const YamlNode& node, const ParamSpec& param) {
  if (param.kind == ParamSpec::Kind::number) return read_number(node, param.min, param.max);
  return static_cast<double>(
      read_count(node, static_cast<std::int64_t>(param.min), static_cast<std::int64_t>(param.max)));
}

// No routing is more skewed than one that sends every token to the same experts.
constexpr double kMostSkew = 65'536;

std::vector<std::string> keys_of(const DistributionInfo& info) {
  std::vector<std::string> keys = {"distribution"};
  for (const ParamSpec& param : info.params) keys.push_back(param.name);
  if (!info.skew_param.empty()) keys.push_back(kMaxOverMean);
  return keys;
}

// The wanted imbalance, in place of the parameter that makes it.
Routing::Param read_target(const YamlNode& node, const MapReader& map, const ParamSpec& param) {
  if (map.find(param.name) != nullptr) {
    fail_at(node, fmt::format("gives both {} and {}: {} is found so that {} comes true", param.name,
                              kMaxOverMean, param.name, kMaxOverMean));
  }
  return {kMaxOverMean, read_number(map.require(kMaxOverMean), 1, kMostSkew)};
}

// `map` is absent where the routing is a name alone.
void read_param(const YamlNode& node, const std::optional<MapReader>& map, const ParamSpec& param,
                const DistributionInfo& info, Routing& routing) {
  const auto find = [&map](const std::string& key) { return map ? map->find(key) : nullptr; };
  if (param.name == info.skew_param && find(kMaxOverMean) != nullptr) {
    routing.params.push_back(read_target(node, *map, param));
  } else if (const YamlNode* value = find(param.name)) {
    routing.params.push_back({param.name, read_param(*value, param)});
  } else if (param.presence == ParamSpec::Presence::always) {
    routing.params.push_back({param.name, param.default_value});
  }
}

}  // namespace

Routing read_routing(const YamlNode& node, const std::string& file, const Catalogs& catalogs) {
  const std::vector<std::string> names = distribution_names(catalogs);
  const bool word_only = node.kind == YamlNode::Kind::scalar;
  if (!word_only && node.kind != YamlNode::Kind::map) {
    fail_at(node, "expected a distribution's name or a map with 'distribution' and its parameters");
  }
  std::vector<std::string> any_key = {"distribution"};
  for (const YamlEntry& entry : node.entries) any_key.push_back(entry.key);
  const YamlNode& name_node = word_only ? node : MapReader(node, any_key).require("distribution");
  Routing routing{
      .distribution = read_choice(name_node, names), .params = {}, .file = {}, .file_checksum = {}};
  const auto info = std::find_if(catalogs.distributions.begin(), catalogs.distributions.end(),
                                 [&](const auto& one) { return one.name == routing.distribution; });
  std::optional<MapReader> map;
  if (!word_only) map.emplace(node, keys_of(*info));
  for (const ParamSpec& param : info->params) {
    if (param.kind != ParamSpec::Kind::file) {
      read_param(node, map, param, *info, routing);
      continue;
    }
    const YamlNode* value = map ? map->find(param.name) : nullptr;
    if (value == nullptr) {
      fail_at(node,
              fmt::format("distribution {} needs the key '{}'", routing.distribution, param.name));
    }
    routing.file = path_beside(file, read_word(*value));
    routing.file_checksum = path_checksum(routing.file);
  }
  return routing;
}

}  // namespace epsweep
