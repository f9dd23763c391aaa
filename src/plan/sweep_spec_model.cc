#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "plan/sweep_spec_parts.h"

namespace epsweep {
namespace {

namespace fs = std::filesystem;

ModelShape read_model_file(const YamlNode& node, const std::string& experiment_file,
                           const std::string& models_dir) {
  const std::string path = find_named_file(node, experiment_file, models_dir, "model");
  return read_model_shape(parse_yaml(read_text_file(path), path), std::nullopt);
}

}  // namespace

std::string path_beside(const std::string& experiment_file, const std::string& path) {
  if (fs::path(path).is_absolute()) return path;
  return (fs::path(experiment_file).parent_path() / path).lexically_normal().string();
}

std::string find_named_file(const YamlNode& node, const std::string& experiment_file,
                            const std::string& dir, const std::string& what) {
  const std::string word = read_word(node);
  const bool is_path = word.find('/') != std::string::npos || word.ends_with(".yaml");
  std::string path =
      is_path ? path_beside(experiment_file, word) : (fs::path(dir) / (word + ".yaml")).string();
  if (fs::exists(path)) return path;
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(dir, ignored)) {
    if (file.path().extension() == ".yaml") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  const std::string close = nearest(word, names);
  fail_at(node,
          fmt::format("there is no {} '{}'{}; known: {}", what, word,
                      close.empty() ? "" : fmt::format(" (nearest: '{}')", close), join(names)));
}

ModelShape read_model(const YamlNode& node, const std::string& file, const SpecSources& sources) {
  if (node.kind != YamlNode::Kind::map) return read_model_file(node, file, sources.models_dir);
  YamlNode own_keys = node;
  std::optional<ModelShape> base;
  std::erase_if(own_keys.entries, [&](const YamlEntry& entry) {
    if (entry.key != "base") return false;
    base = read_model_file(entry.value, file, sources.models_dir);
    return true;
  });
  return read_model_shape(own_keys, base);
}

}  // namespace epsweep
