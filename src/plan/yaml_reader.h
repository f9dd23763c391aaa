// Strict reading of YAML values: every mistake is an error that says where it is and what would be
// right. All functions throw ConfigError.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/yaml_tree.h"

namespace epsweep {

// "file:line: path: problem"
[[noreturn]] void fail_at(const YamlNode& node, const std::string& problem);

std::string read_word(const YamlNode& node);
// A whole number in [min, max]. 3.0, 1e3 and "3" in quotes are refused.
std::int64_t read_count(const YamlNode& node, std::int64_t min, std::int64_t max);
std::uint64_t read_seed(const YamlNode& node);
double read_number(const YamlNode& node, double min, double max);
bool read_flag(const YamlNode& node);
// One of the names; the message offers the nearest one.
std::string read_choice(const YamlNode& node, const std::vector<std::string>& names);
// The items of a list that is not empty; a single value counts as a list of one.
std::vector<const YamlNode*> read_items(const YamlNode& node);

// Position of the chosen name: for enums whose values are in the order of the names.
template <typename Enum>
Enum read_enum(const YamlNode& node, const std::vector<std::string>& names) {
  const std::string name = read_choice(node, names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  fail_at(node, "unreachable");
}

// A map whose keys are all known. Keys outside `known` are refused on construction; the message
// carries `advice(key)` where that is not empty, else the nearest known key.
class MapReader {
 public:
  using Advice = std::function<std::string(const std::string& key)>;
  MapReader(const YamlNode& node, const std::vector<std::string>& known, const Advice& advice = {});

  // nullptr where the key is absent.
  const YamlNode* find(const std::string& key) const;
  const YamlNode& require(const std::string& key) const;

 private:
  const YamlNode& node_;
};

}  // namespace epsweep
