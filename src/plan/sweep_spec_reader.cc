#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "plan/sweep_spec_parts.h"
#include "plan/yaml_reader.h"

namespace epsweep {
namespace {

constexpr std::int64_t kMaxEpSize = 65'536;
constexpr std::int64_t kMaxIterations = 1'000'000;
constexpr double kMaxCapacityFactor = 1'000;  // the fullest pair has at most ep_size^2 means

const std::vector<std::string> kTopKeys = {"name",
                                           "description",
                                           "model",
                                           "ep_sizes",
                                           "concurrency",
                                           "routing",
                                           "placement",
                                           "redundant_slots",
                                           "exchange_unit",
                                           "transport",
                                           "capacity_factor",
                                           "launch",
                                           "grouped_gemm",
                                           "dtype",
                                           "mapping",
                                           "topology",
                                           "groups",
                                           "weight_cache",
                                           "ceilings",
                                           "explain",
                                           "allow_empty_ranks",
                                           "layers",
                                           "vary_routing",
                                           "warmup",
                                           "iterations",
                                           "iteration_target",
                                           "repeats",
                                           "seed",
                                           "step",
                                           "hardware",
                                           "serving",
                                           "latency_objective_us",
                                           "limits",
                                           "sim"};

// For an unknown top-level key: where it is valid, or the nearest key of any section.
std::string advice_for_top_key(const std::string& key, const Catalogs& catalogs) {
  std::vector<std::string> words = kTopKeys;
  std::vector<std::string> places(words.size());
  const auto offer = [&](const std::string& word, const std::string& section) {
    words.push_back(word);
    places.push_back(section);
  };
  for (const std::string& word : concurrency_keys()) offer(word, "concurrency");
  offer("distribution", "routing");
  for (const char* word : {"policies", "fit_on", "judge_on"}) offer(word, "placement");
  offer(kMaxOverMean, "routing");
  for (const DistributionInfo& info : catalogs.distributions) {
    for (const ParamSpec& param : info.params) offer(param.name, "routing");
  }
  for (const std::string& word : model_shape_keys()) offer(word, "model");
  for (const std::string& word : topology_keys()) offer(word, "topology");
  for (const std::string& word : serving_keys()) offer(word, "serving");
  for (const std::string& word : hardware_keys()) offer(word, "hardware");
  for (const std::string& word : limits_keys()) offer(word, "limits");
  for (const std::string& word : sim_keys()) offer(word, "sim");
  const std::string close = nearest(key, words);
  if (close.empty()) return "";
  const auto at =
      static_cast<std::size_t>(std::find(words.begin(), words.end(), close) - words.begin());
  if (places[at].empty()) return "";
  if (close == key) return fmt::format("it belongs under '{}'", places[at]);
  return fmt::format("nearest valid key: '{}.{}'", places[at], close);
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

// The axes that are lists of names or numbers.
void read_axes(const MapReader& top, const std::string& file, const SpecSources& sources,
               SweepSpec& spec) {
  const YamlNode& ep_sizes = top.require("ep_sizes");
  for (const YamlNode* item : read_items(ep_sizes)) {
    spec.ep_sizes.push_back(static_cast<int>(read_count(*item, 1, kMaxEpSize)));
  }
  refuse_repeats(ep_sizes, spec.ep_sizes, [](int size) { return std::to_string(size); });
  const auto names_or = [&](const char* key, const std::vector<std::string>& known,
                            const std::string& otherwise) {
    const YamlNode* node = top.find(key);
    return node == nullptr ? std::vector<std::string>{otherwise} : read_names(*node, known);
  };
  PlacementAxis placement = read_placements(top, file, sources.catalogs, spec.model.num_experts);
  spec.placement = std::move(placement.choices);
  spec.judge_on = std::move(placement.judge_on);
  spec.transport =
      names_or("transport", sources.catalogs.transports, sources.catalogs.default_transport);
  spec.grouped_gemm = names_or("grouped_gemm", sources.catalogs.grouped_gemms,
                               sources.catalogs.default_grouped_gemm);
  const YamlNode* dtype = top.find("dtype");
  spec.dtype = dtype == nullptr ? std::vector{DType::bf16} : read_enums<DType>(*dtype, kDTypeNames);
  if (const YamlNode* unit = top.find("exchange_unit")) {
    spec.exchange_unit = read_enums<ExchangeUnit>(*unit, kExchangeUnitNames);
  }
  if (const YamlNode* launch = top.find("launch")) {
    spec.launch = read_enums<Launch>(*launch, kLaunchNames);
  }
  const YamlNode* mapping = top.find("mapping");
  spec.mapping = mapping == nullptr ? std::vector{Mapping::packed}
                                    : read_enums<Mapping>(*mapping, kMappingNames);
  if (const YamlNode* topology = top.find("topology")) {
    spec.topology = read_topology(*topology);
    if (spec.topology.num_ranks() == 0 &&
        std::ranges::find(spec.mapping, Mapping::spread) != spec.mapping.end()) {
      fail_at(*topology, "mapping spread needs 'hosts': groups are spread over all ranks");
    }
  }
}

// At least the fixed count, then until the median is known to `precision`.
IterationTarget read_iteration_target(const YamlNode& node, int fewest) {
  const MapReader map(node, {"precision", "most", "limit_s"});
  IterationTarget target;
  target.precision = read_number(map.require("precision"), 1e-4, 0.5);
  if (const YamlNode* most = map.find("most")) {
    target.most = static_cast<int>(read_count(*most, fewest, kMaxIterations));
  }
  target.most = std::max(target.most, fewest);
  if (const YamlNode* limit = map.find("limit_s")) target.limit_s = read_number(*limit, 0.01, 1e5);
  return target;
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
  if (const YamlNode* node = top.find("iteration_target")) {
    spec.iteration_target = read_iteration_target(*node, spec.iterations);
  }
  spec.vary_routing = count("vary_routing", spec.vary_routing, 1, 1024);
  if (spec.vary_routing > spec.iterations) {
    fail_at(*top.find("vary_routing"), fmt::format("{} iterations do not come to {} steps",
                                                   spec.iterations, spec.vary_routing));
  }
  spec.repeats = count("repeats", spec.repeats, 1, 1000);
  if (const YamlNode* node = top.find("step")) spec.step = read_count(*node, 0, INT64_MAX);
  if (const YamlNode* node = top.find("seed")) spec.seed = read_seed(*node);
  if (const YamlNode* node = top.find("groups")) {
    spec.groups = read_enum<Groups>(*node, kGroupsNames);
  }
  if (const YamlNode* node = top.find("weight_cache")) {
    spec.weight_cache = read_enum<WeightCache>(*node, kWeightCacheNames);
  }
  if (const YamlNode* node = top.find("explain")) {
    spec.explain = read_enum<Explain>(*node, kExplainNames);
  }
  if (const YamlNode* node = top.find("ceilings")) {
    spec.ceilings = read_enum<Ceilings>(*node, kCeilingsNames);
  }
  if (const YamlNode* node = top.find("capacity_factor")) {
    spec.capacity_factor = read_number(*node, 1, kMaxCapacityFactor);
  }
  if (const YamlNode* node = top.find("sim")) {
    spec.sim = std::make_shared<const SimCosts>(read_sim_costs(*node));
  }
  if (const YamlNode* node = top.find("allow_empty_ranks")) {
    spec.allow_empty_ranks = read_flag(*node);
  }
}

}  // namespace

std::vector<std::string> read_names(const YamlNode& node, const std::vector<std::string>& names) {
  std::vector<std::string> chosen;
  for (const YamlNode* item : read_items(node)) chosen.push_back(read_choice(*item, names));
  refuse_repeats(node, chosen, [](const std::string& name) { return name; });
  return chosen;
}

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
  read_axes(top, file, sources, spec);
  spec.concurrency = read_concurrency(top.require("concurrency"));
  const YamlNode& routing = top.require("routing");
  for (const YamlNode* item : read_items(routing)) {
    spec.routing.push_back(read_routing(*item, file, sources.catalogs));
  }
  refuse_repeats(routing, spec.routing, [](const Routing& one) { return one.label(); });
  read_fixed(top, spec);
  for (const PlacementChoice& choice : spec.placement) {
    if (choice.map != nullptr) check_map_layers(*choice.map, spec.layers);
  }
  read_deployment(top, file, sources, spec);
  read_limits(top, spec);
  return spec;
}

}  // namespace epsweep
