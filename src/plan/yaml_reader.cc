#include "plan/yaml_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace epsweep {
namespace {

std::string kind_name(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
    case YamlNode::Kind::scalar:
      break;
  }
  const char quote = node.quoted ? '"' : '\'';
  return quote + node.scalar + quote;
}

// A leading '+' is YAML but not from_chars.
template <typename T>
bool parse_whole(const std::string& text, T& value) {
  const char* begin = text.data() + (text.rfind('+', 0) == 0 ? 1 : 0);
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(begin, end, value);
  return error == std::errc() && rest == end;
}

bool is_plain_scalar(const YamlNode& node) {
  return node.kind == YamlNode::Kind::scalar && !node.quoted;
}

}  // namespace

void fail_at(const YamlNode& node, const std::string& problem) {
  throw ConfigError(node.where() + ": " + problem);
}

std::string read_word(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar || node.scalar.empty()) {
    fail_at(node, fmt::format("expected a word, found {}", kind_name(node)));
  }
  return node.scalar;
}

std::int64_t read_count(const YamlNode& node, std::int64_t min, std::int64_t max) {
  std::int64_t value = 0;
  if (!is_plain_scalar(node) || !parse_whole(node.scalar, value)) {
    fail_at(node, fmt::format("expected a whole number, found {}", kind_name(node)));
  }
  if (value < min || value > max) {
    fail_at(node, fmt::format("{} is outside {} to {}", value, min, max));
  }
  return value;
}

std::uint64_t read_seed(const YamlNode& node) {
  std::uint64_t value = 0;
  if (!is_plain_scalar(node) || !parse_whole(node.scalar, value)) {
    fail_at(node,
            fmt::format("expected a whole number from 0 to 2^64-1, found {}", kind_name(node)));
  }
  return value;
}

double read_number(const YamlNode& node, double min, double max) {
  double value = 0;
  const std::string& text = node.scalar;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!is_plain_scalar(node) || error != std::errc() || rest != text.data() + text.size() ||
      !std::isfinite(value)) {
    fail_at(node, fmt::format("expected a number, found {}", kind_name(node)));
  }
  if (value < min || value > max)
    fail_at(node, fmt::format("{} is outside {} to {}", value, min, max));
  return value;
}

bool read_flag(const YamlNode& node) {
  if (is_plain_scalar(node) && node.scalar == "true") return true;
  if (is_plain_scalar(node) && node.scalar == "false") return false;
  fail_at(node, fmt::format("expected true or false, found {}", kind_name(node)));
}

std::string read_choice(const YamlNode& node, const std::vector<std::string>& names) {
  const std::string word = read_word(node);
  if (std::find(names.begin(), names.end(), word) != names.end()) return word;
  const std::string close = nearest(word, names);
  fail_at(node, fmt::format("'{}' is not one of: {}{}", word, join(names),
                            close.empty() ? "" : fmt::format(" (nearest: '{}')", close)));
}

std::vector<const YamlNode*> read_items(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::list) return {&node};
  if (node.items.empty()) fail_at(node, "the list is empty");
  std::vector<const YamlNode*> items;
  for (const YamlNode& item : node.items) items.push_back(&item);
  return items;
}

MapReader::MapReader(const YamlNode& node, const std::vector<std::string>& known,
                     const Advice& advice)
    : node_(node) {
  if (node.kind != YamlNode::Kind::map) {
    fail_at(node, fmt::format("expected a map with keys from: {}; found {}", join(known),
                              kind_name(node)));
  }
  for (const YamlEntry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    std::string hint = advice ? advice(entry.key) : "";
    const std::string close = nearest(entry.key, known);
    if (hint.empty()) {
      hint = close.empty() ? fmt::format("valid keys: {}", join(known))
                           : fmt::format("nearest valid key: '{}'", close);
    }
    throw ConfigError(fmt::format("{}:{}: {}: unknown key ({})", entry.value.file, entry.line,
                                  entry.value.path, hint));
  }
}

const YamlNode* MapReader::find(const std::string& key) const {
  for (const YamlEntry& entry : node_.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

const YamlNode& MapReader::require(const std::string& key) const {
  const YamlNode* found = find(key);
  if (found == nullptr) fail_at(node_, fmt::format("the key '{}' is missing", key));
  return *found;
}

}  // namespace epsweep
