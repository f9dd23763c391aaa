// A YAML document as plain values that remember where they stand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace epsweep {

struct YamlEntry;

struct YamlNode {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  std::string file;  // or "--set" for a value from the command line
  int line = 0;      // from 1
  std::string path;  // dotted, list positions as numbers: "routing.0.zipf_alpha"; "" at the top
  std::string scalar;
  bool quoted = false;
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;

  // "file:line: path" (or "file:line" at the top), for messages.
  std::string where() const;
};

struct YamlEntry {
  std::string key;
  int line = 0;
  YamlNode value;
};

// Throws ConfigError on syntax errors, duplicate keys, keys that are not scalars, several
// documents in one file, nesting deeper than 32, more than 100,000 nodes or 64 MiB (aliases
// expanded), texts above 4 MiB, keys above 200 characters.
YamlNode parse_yaml(std::string_view text, const std::string& file);

// Applies "dotted.path=value" (value in YAML flow syntax). Missing maps on the way are made; a list
// position must exist. Throws ConfigError on a malformed assignment.
void apply_override(YamlNode& root, const std::string& assignment);

}  // namespace epsweep
