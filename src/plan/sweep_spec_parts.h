// The parts of an experiment file, one reader for each; sweep_spec_reader.cc puts them together.
// All throw ConfigError.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plan/sweep_spec.h"
#include "plan/yaml_reader.h"

namespace epsweep {

// Tokens of one EP group, or of a rank.
inline constexpr std::int64_t kMaxTokens = 100'000'000;

// Refuses the same value twice on one axis: both points would be the same point.
template <typename T, typename Key>
void refuse_repeats(const YamlNode& node, const std::vector<T>& values, Key key) {
  std::set<std::string> seen;
  for (const T& value : values) {
    if (!seen.insert(key(value)).second)
      fail_at(node, fmt::format("{} is listed twice", key(value)));
  }
}

// One or several of the names, none twice.
std::vector<std::string> read_names(const YamlNode& node, const std::vector<std::string>& names);

// A path in an experiment file is relative to that file.
std::string path_beside(const std::string& experiment_file, const std::string& path);

// The file that a name (of a file in `dir`) or a path stands for; `what` is for the message.
std::string find_named_file(const YamlNode& node, const std::string& experiment_file,
                            const std::string& dir, const std::string& what);

const std::vector<std::string>& concurrency_keys();
std::vector<Concurrency> read_concurrency(const YamlNode& node);

// A name, a path, or a map; a map with `base` changes keys of a named model.
ModelShape read_model(const YamlNode& node, const std::string& file, const SpecSources& sources);

Routing read_routing(const YamlNode& node, const std::string& file, const Catalogs& catalogs);

// A map of `distribution` with its parameters, `step`, `seed` and `tokens`, all optional.
TraceChoice read_trace_choice(const YamlNode& node, const std::string& file,
                              const Catalogs& catalogs);

struct PlacementAxis {
  std::vector<PlacementChoice> choices;
  std::optional<TraceChoice> judge_on;
};

// `placement`, with `redundant_slots` beside it or inside. Placements without replicas appear once;
// a count that none of the placements takes is refused, and so is fit_on where none is fitted.
PlacementAxis read_placements(const MapReader& top, const std::string& file,
                              const Catalogs& catalogs, int num_experts);

// hardware (a name, a path, or a map with `base`), serving and latency_objective_us.
void read_deployment(const MapReader& top, const std::string& file, const SpecSources& sources,
                     SweepSpec& spec);

// `limits`; looks at the model, the iterations and latency_objective_us, so it comes last.
void read_limits(const MapReader& top, SweepSpec& spec);

}  // namespace epsweep
