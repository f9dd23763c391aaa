#include "plan/yaml_tree.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/error.h"

namespace epsweep {
namespace {

constexpr int kMaxDepth = 32;
constexpr int kMaxNodes = 100'000;
constexpr std::size_t kMaxTextBytes = 4U << 20;
constexpr std::size_t kMaxKeyBytes = 200;
// Words and paths of all nodes: aliases repeat what they stand for.
constexpr std::size_t kMaxTreeBytes = 64U << 20;

std::string child_path(const std::string& parent, const std::string& name) {
  return parent.empty() ? name : parent + "." + name;
}

struct NoHandler final : YAML::EventHandler {
  using Mark = YAML::Mark;
  using Style = YAML::EmitterStyle::value;
  void OnDocumentStart(const Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const Mark&, YAML::anchor_t) override {}
  void OnAlias(const Mark&, YAML::anchor_t) override {}
  void OnScalar(const Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnMapEnd() override {}
};

// YAML::LoadAll() would do, did it not make empty documents without end where a text begins with
// what belongs to none, such as ", a" (yaml-cpp 0.7).
bool has_second_document(std::string_view text) {
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  NoHandler handler;
  return parser.HandleNextDocument(handler) && parser.HandleNextDocument(handler);
}

struct Converter {
  std::string file;
  int num_nodes = 0;
  std::size_t num_bytes = 0;

  YamlNode convert(const YAML::Node& source, const std::string& path, int depth) {
    YamlNode node;
    node.file = file;
    node.path = path;
    node.line = source.Mark().line + 1;
    num_bytes += path.size() + (source.IsScalar() ? source.Scalar().size() : 0);
    if (depth > kMaxDepth || ++num_nodes > kMaxNodes || num_bytes > kMaxTreeBytes) {
      throw ConfigError(fmt::format("{}: nested too deeply or too large", node.where()));
    }
    switch (source.Type()) {
      case YAML::NodeType::Scalar:
        node.kind = YamlNode::Kind::scalar;
        node.scalar = source.Scalar();
        node.quoted = source.Tag() == "!";
        break;
      case YAML::NodeType::Sequence:
        convert_list(source, depth, node);
        break;
      case YAML::NodeType::Map:
        convert_map(source, depth, node);
        break;
      case YAML::NodeType::Null:
      case YAML::NodeType::Undefined:
        break;
    }
    return node;
  }

  void convert_list(const YAML::Node& source, int depth, YamlNode& node) {
    node.kind = YamlNode::Kind::list;
    for (const YAML::Node& item : source) {
      const std::string name = std::to_string(node.items.size());
      node.items.push_back(convert(item, child_path(node.path, name), depth + 1));
    }
  }

  void convert_map(const YAML::Node& source, int depth, YamlNode& node) {
    node.kind = YamlNode::Kind::map;
    std::map<std::string, int> lines;
    for (const auto& pair : source) {
      const int line = pair.first.Mark().line + 1;
      if (!pair.first.IsScalar()) {
        throw ConfigError(fmt::format("{}:{}: a key must be a plain word", file, line));
      }
      const std::string key = pair.first.Scalar();
      if (key.size() > kMaxKeyBytes) {
        throw ConfigError(fmt::format("{}:{}: a key longer than {} characters: {}...", file, line,
                                      kMaxKeyBytes, key.substr(0, 40)));
      }
      const auto [earlier, is_new] = lines.emplace(key, line);
      if (!is_new) {
        throw ConfigError(fmt::format("{}:{}: {}: this key already stands on line {}", file, line,
                                      child_path(node.path, key), earlier->second));
      }
      node.entries.push_back(
          {key, line, convert(pair.second, child_path(node.path, key), depth + 1)});
    }
  }
};

YamlNode* find_or_make(YamlNode& node, const std::string& word) {
  if (node.kind == YamlNode::Kind::list) {
    const bool is_position =
        !word.empty() && word.size() < 9 &&
        std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!is_position || std::stoul(word) >= node.items.size()) {
      throw ConfigError(fmt::format("--set: {}: '{}' is not a position in this list of {}",
                                    node.path, word, node.items.size()));
    }
    return &node.items[std::stoul(word)];
  }
  if (node.kind == YamlNode::Kind::scalar) {
    throw ConfigError(
        fmt::format("--set: {}: holds a single value, so it has no '{}' inside", node.path, word));
  }
  node.kind = YamlNode::Kind::map;
  for (YamlEntry& entry : node.entries) {
    if (entry.key == word) return &entry.value;
  }
  YamlNode made;
  made.file = "--set";
  made.line = 1;
  made.path = child_path(node.path, word);
  node.entries.push_back({word, 1, std::move(made)});
  return &node.entries.back().value;
}

void move_below(YamlNode& node, const std::string& path) {
  node.path = path;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    move_below(node.items[i], child_path(path, std::to_string(i)));
  }
  for (YamlEntry& entry : node.entries) move_below(entry.value, child_path(path, entry.key));
}

}  // namespace

std::string YamlNode::where() const {
  const std::string place = fmt::format("{}:{}", file, line);
  return path.empty() ? place : place + ": " + path;
}

YamlNode parse_yaml(std::string_view text, const std::string& file) {
  if (text.size() > kMaxTextBytes) {
    throw ConfigError(
        fmt::format("{}: {} bytes, expected at most {} of YAML", file, text.size(), kMaxTextBytes));
  }
  try {
    const YAML::Node document = YAML::Load(std::string(text));
    if (has_second_document(text)) {
      throw ConfigError(file +
                        ": expected one document, found 2 documents or text that belongs to none");
    }
    Converter converter{.file = file};
    return converter.convert(document, "", 0);
  } catch (const YAML::Exception& error) {
    throw ConfigError(
        fmt::format("{}:{}: not valid YAML: {}", file, error.mark.line + 1, error.msg));
  }
}

void apply_override(YamlNode& root, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw ConfigError(
        fmt::format("--set {}: expected dotted.path=value, such as seed=7", assignment));
  }
  YamlNode* target = &root;
  std::istringstream words(assignment.substr(0, equals));
  for (std::string word; std::getline(words, word, '.');) target = find_or_make(*target, word);
  YamlNode value = parse_yaml(assignment.substr(equals + 1), "--set");
  move_below(value, target->path);
  *target = std::move(value);
}

}  // namespace epsweep
