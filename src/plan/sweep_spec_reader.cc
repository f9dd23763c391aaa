#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "plan/sweep_spec.h"
#include "plan/yaml_reader.h"

namespace epsweep {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxEpSize = 65'536;
constexpr std::int64_t kMaxRedundantSlots = 1'000'000;
constexpr std::int64_t kMaxTokens = 100'000'000;
constexpr std::int64_t kMaxIterations = 1'000'000;

const std::vector<std::string> kTopKeys = {
    "name",    "description", "model",           "ep_sizes",     "concurrency",
    "routing", "placement",   "redundant_slots", "transport",    "grouped_gemm",
    "dtype",   "mapping",     "groups",          "weight_cache", "allow_empty_ranks",
    "layers",  "warmup",      "iterations",      "repeats",      "seed",
    "step"};
const std::vector<std::string> kConcurrencyKeys = {"fixed_global", "fixed_per_rank",
                                                   "tokens_per_rank"};

// For an unknown top-level key: where it is valid, or the nearest key of any section.
std::string advice_for_top_key(const std::string& key, const Catalogs& catalogs) {
  std::vector<std::string> words = kTopKeys;
  std::vector<std::string> places(words.size());
  const auto offer = [&](const std::string& word, const std::string& section) {
    words.push_back(word);
    places.push_back(section);
  };
  for (const std::string& word : kConcurrencyKeys) offer(word, "concurrency");
  offer("distribution", "routing");
  for (const DistributionInfo& info : catalogs.distributions) {
    for (const ParamSpec& param : info.params) offer(param.name, "routing");
  }
  for (const std::string& word : model_shape_keys()) offer(word, "model");
  const std::string close = nearest(key, words);
  if (close.empty()) return "";
  const auto at =
      static_cast<std::size_t>(std::find(words.begin(), words.end(), close) - words.begin());
  if (places[at].empty()) return "";
  if (close == key) return fmt::format("it belongs under '{}'", places[at]);
  return fmt::format("nearest valid key: '{}.{}'", places[at], close);
}

// Refuses the same value twice on one axis: both points would be the same point.
template <typename T, typename Key>
void refuse_repeats(const YamlNode& node, const std::vector<T>& values, Key key) {
  std::set<std::string> seen;
  for (const T& value : values) {
    if (!seen.insert(key(value)).second)
      fail_at(node, fmt::format("{} is listed twice", key(value)));
  }
}

std::vector<std::string> read_names(const YamlNode& node, const std::vector<std::string>& names) {
  std::vector<std::string> chosen;
  for (const YamlNode* item : read_items(node)) chosen.push_back(read_choice(*item, names));
  refuse_repeats(node, chosen, [](const std::string& name) { return name; });
  return chosen;
}

template <typename Enum>
std::vector<Enum> read_enums(const YamlNode& node, const std::vector<std::string>& names) {
  std::vector<Enum> values;
  for (const std::string& name : read_names(node, names)) {
    values.push_back(
        static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin()));
  }
  return values;
}

// A list of counts, or {from, to, factor}: from, from*factor, ... up to and including to.
std::vector<std::int64_t> read_ladder(const YamlNode& node) {
  std::vector<std::int64_t> tokens;
  if (node.kind != YamlNode::Kind::map) {
    for (const YamlNode* item : read_items(node))
      tokens.push_back(read_count(*item, 0, kMaxTokens));
  } else {
    const MapReader ladder(node, {"from", "to", "factor"});
    const std::int64_t from = read_count(ladder.require("from"), 1, kMaxTokens);
    const std::int64_t to = read_count(ladder.require("to"), from, kMaxTokens);
    const std::int64_t factor = read_count(ladder.require("factor"), 2, kMaxTokens);
    for (std::int64_t count = from; count <= to; count *= factor) tokens.push_back(count);
  }
  refuse_repeats(node, tokens, [](std::int64_t count) { return std::to_string(count); });
  return tokens;
}

std::vector<Concurrency> read_listed(const YamlNode& node) {
  std::vector<Concurrency> loads;
  const bool one_list = node.kind == YamlNode::Kind::list && !node.items.empty() &&
                        node.items.front().kind != YamlNode::Kind::list;
  const auto lists = one_list ? std::vector<const YamlNode*>{&node} : read_items(node);
  for (const YamlNode* list : lists) {
    Concurrency load{.mode = ConcurrencyMode::listed, .tokens = 0, .tokens_per_rank = {}};
    if (list->kind != YamlNode::Kind::list) fail_at(*list, "expected a list of tokens by rank");
    for (const YamlNode* item : read_items(*list)) {
      load.tokens_per_rank.push_back(read_count(*item, 0, kMaxTokens));
    }
    loads.push_back(std::move(load));
  }
  return loads;
}

std::vector<Concurrency> read_concurrency(const YamlNode& node) {
  const MapReader map(node, kConcurrencyKeys);
  if (node.entries.empty()) fail_at(node, "names no load: " + join(kConcurrencyKeys));
  std::vector<Concurrency> loads;
  for (const ConcurrencyMode mode :
       {ConcurrencyMode::fixed_global, ConcurrencyMode::fixed_per_rank}) {
    const YamlNode* ladder = map.find(to_string(mode));
    if (ladder == nullptr) continue;
    for (const std::int64_t tokens : read_ladder(*ladder)) {
      loads.push_back({.mode = mode, .tokens = tokens, .tokens_per_rank = {}});
    }
  }
  if (const YamlNode* lists = map.find("tokens_per_rank")) {
    for (Concurrency& load : read_listed(*lists)) loads.push_back(std::move(load));
  }
  return loads;
}

std::string beside(const std::string& experiment_file, const std::string& path) {
  if (fs::path(path).is_absolute()) return path;
  return (fs::path(experiment_file).parent_path() / path).lexically_normal().string();
}

std::vector<std::string> distribution_names(const Catalogs& catalogs) {
  std::vector<std::string> names;
  for (const DistributionInfo& info : catalogs.distributions) names.push_back(info.name);
  return names;
}

// Result directories are named after it.
std::string read_file_stem(const YamlNode& node) {
  std::string word = read_word(node);
  const bool clean = word.front() != '.' && std::ranges::all_of(word, [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
                     });
  if (!clean) fail_at(node, "only letters, digits, '_', '-' and '.' (not in front) may be used");
  if (word.size() > 100) fail_at(node, "longer than 100 characters");
  return word;
}

double read_param(const YamlNode& node, const ParamSpec& param) {
  if (param.kind == ParamSpec::Kind::number) return read_number(node, param.min, param.max);
  return static_cast<double>(
      read_count(node, static_cast<std::int64_t>(param.min), static_cast<std::int64_t>(param.max)));
}

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
      routing.file = beside(file, read_word(*value));
      routing.file_checksum = text_checksum(read_text_file(routing.file));
    } else {
      fail_at(node,
              fmt::format("distribution {} needs the key '{}'", routing.distribution, param.name));
    }
  }
  return routing;
}

ModelShape read_model_file(const YamlNode& node, const std::string& experiment_file,
                           const std::string& models_dir) {
  const std::string word = read_word(node);
  const bool is_path = word.find('/') != std::string::npos || word.ends_with(".yaml");
  const std::string path =
      is_path ? beside(experiment_file, word) : (fs::path(models_dir) / (word + ".yaml")).string();
  if (!fs::exists(path)) {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& file : fs::directory_iterator(models_dir, ignored)) {
      if (file.path().extension() == ".yaml") names.push_back(file.path().stem().string());
    }
    std::sort(names.begin(), names.end());
    const std::string close = nearest(word, names);
    fail_at(node,
            fmt::format("there is no model '{}'{}; known: {}", word,
                        close.empty() ? "" : fmt::format(" (nearest: '{}')", close), join(names)));
  }
  return read_model_shape(parse_yaml(read_text_file(path), path), std::nullopt);
}

// A name, a path, or a map; a map with `base` changes keys of a named model.
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

// Placements without replicas appear once; a count that none of the placements takes is refused.
std::vector<PlacementChoice> read_placements(const MapReader& top,
                                             const std::vector<PlacementInfo>& known) {
  std::vector<std::string> names, replicating, chosen = {"contiguous"};
  for (const PlacementInfo& info : known) {
    names.push_back(info.name);
    if (info.slot_rule == SlotRule::equal_per_rank) replicating.push_back(info.name);
  }
  if (const YamlNode* node = top.find("placement")) chosen = read_names(*node, names);
  const auto replicates = [&](const std::string& name) {
    return std::ranges::find(replicating, name) != replicating.end();
  };
  std::vector<int> counts = {0};
  if (const YamlNode* node = top.find("redundant_slots")) {
    counts.clear();
    for (const YamlNode* item : read_items(*node)) {
      counts.push_back(static_cast<int>(read_count(*item, 0, kMaxRedundantSlots)));
      if (counts.back() == 0 || std::ranges::any_of(chosen, replicates)) continue;
      fail_at(*item, fmt::format("placement {} has no replicas; those that have: {}", join(chosen),
                                 join(replicating)));
    }
    refuse_repeats(*node, counts, [](int count) { return std::to_string(count); });
  }
  std::vector<PlacementChoice> choices;
  for (const std::string& name : chosen) {
    for (const int count : replicates(name) ? counts : std::vector{0}) {
      choices.push_back({.name = name, .redundant_slots = count});
    }
  }
  return choices;
}

// The axes that are lists of names or numbers.
void read_axes(const MapReader& top, const SpecSources& sources, SweepSpec& spec) {
  const YamlNode& ep_sizes = top.require("ep_sizes");
  for (const YamlNode* item : read_items(ep_sizes)) {
    spec.ep_sizes.push_back(static_cast<int>(read_count(*item, 1, kMaxEpSize)));
  }
  refuse_repeats(ep_sizes, spec.ep_sizes, [](int size) { return std::to_string(size); });
  const auto names_or = [&](const char* key, const std::vector<std::string>& known,
                            const char* otherwise) {
    const YamlNode* node = top.find(key);
    return node == nullptr ? std::vector<std::string>{otherwise} : read_names(*node, known);
  };
  spec.placement = read_placements(top, sources.catalogs.placements);
  spec.transport = names_or("transport", sources.catalogs.transports, "pairwise");
  spec.grouped_gemm = names_or("grouped_gemm", sources.catalogs.grouped_gemms, "onednn");
  const YamlNode* dtype = top.find("dtype");
  spec.dtype = dtype == nullptr ? std::vector{DType::bf16} : read_enums<DType>(*dtype, kDTypeNames);
  const YamlNode* mapping = top.find("mapping");
  spec.mapping = mapping == nullptr ? std::vector{Mapping::packed}
                                    : read_enums<Mapping>(*mapping, kMappingNames);
}

// The values that are the same for all points.
void read_fixed(const MapReader& top, SweepSpec& spec) {
  const auto count = [&](const char* key, int otherwise, std::int64_t min, std::int64_t max) {
    const YamlNode* node = top.find(key);
    return node == nullptr ? otherwise : static_cast<int>(read_count(*node, min, max));
  };
  spec.layers = count("layers", spec.layers, 1, 1024);
  spec.warmup = count("warmup", spec.warmup, 0, kMaxIterations);
  spec.iterations = count("iterations", spec.iterations, 1, kMaxIterations);
  spec.repeats = count("repeats", spec.repeats, 1, 1000);
  if (const YamlNode* node = top.find("step")) spec.step = read_count(*node, 0, INT64_MAX);
  if (const YamlNode* node = top.find("seed")) spec.seed = read_seed(*node);
  if (const YamlNode* node = top.find("groups")) {
    spec.groups = read_enum<Groups>(*node, kGroupsNames);
  }
  if (const YamlNode* node = top.find("weight_cache")) {
    spec.weight_cache = read_enum<WeightCache>(*node, kWeightCacheNames);
  }
  if (const YamlNode* node = top.find("allow_empty_ranks")) {
    spec.allow_empty_ranks = read_flag(*node);
  }
}

}  // namespace

SweepSpec read_sweep_spec(std::string_view text, const std::string& file,
                          const std::vector<std::string>& overrides, const SpecSources& sources) {
  YamlNode root = parse_yaml(text, file);
  for (const std::string& assignment : overrides) apply_override(root, assignment);
  const MapReader top(root, kTopKeys, [&](const std::string& key) {
    return advice_for_top_key(key, sources.catalogs);
  });
  SweepSpec spec;
  spec.name = read_file_stem(top.require("name"));
  if (const YamlNode* node = top.find("description")) spec.description = read_word(*node);
  spec.model = read_model(top.require("model"), file, sources);
  read_axes(top, sources, spec);
  spec.concurrency = read_concurrency(top.require("concurrency"));
  const YamlNode& routing = top.require("routing");
  for (const YamlNode* item : read_items(routing)) {
    spec.routing.push_back(read_routing(*item, file, sources.catalogs));
  }
  refuse_repeats(routing, spec.routing, [](const Routing& one) { return one.label(); });
  read_fixed(top, spec);
  return spec;
}

}  // namespace epsweep
