#include <algorithm>

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
  std::vector<std::string> keys = {"distribution"};
  for (const ParamSpec& param : info->params) keys.push_back(param.name);
  if (!word_only) MapReader(node, keys);
  for (const ParamSpec& param : info->params) {
    const YamlNode* value = word_only ? nullptr : MapReader(node, keys).find(param.name);
    if (param.kind != ParamSpec::Kind::file) {
      routing.params.push_back(
          {param.name, value == nullptr ? param.default_value : read_param(*value, param)});
    } else if (value != nullptr) {
      routing.file = path_beside(file, read_word(*value));
      routing.file_checksum = text_checksum(read_text_file(routing.file));
    } else {
      fail_at(node,
              fmt::format("distribution {} needs the key '{}'", routing.distribution, param.name));
    }
  }
  return routing;
}

}  // namespace epsweep
