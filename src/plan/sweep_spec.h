// An experiment file as values: the axes of a sweep and what is held fixed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "base/launch.h"
#include "plan/catalogs.h"
#include "plan/hardware.h"
#include "plan/limits.h"
#include "plan/model_shape.h"
#include "plan/placement_map.h"
#include "plan/serving.h"
#include "plan/sim_costs.h"
#include "plan/topology.h"

namespace epsweep {

// Which token count is held while EP size varies. `listed` fixes every rank's count by hand, so it
// fits one EP size only.
enum class ConcurrencyMode { fixed_global, fixed_per_rank, listed };
// Which world ranks form a group: neighbours, or ranks as far apart as possible.
enum class Mapping { packed, spread };
// How often a token row is sent: once per (token, chosen expert), or once per distinct destination
// rank, with the list of experts it is for.
enum class ExchangeUnit { assignment, rank };
// How many groups run: as many as the world holds, or one.
enum class Groups { fill, single };
// What timed iterations find in the caches: weights flushed before each one, or left as they are.
enum class WeightCache { flush, warm };
// Whether a run measures what its ranks can do at best, beside its points.
enum class Ceilings { measure, skip };

// Which points beside the asked ones are run to explain those: none, those that tell width from
// concurrency, or counterfactual ones too (plan/bridges.h).
enum class Explain { none, bridges, deep };

inline const std::vector<std::string> kExplainNames = {"none", "bridges", "deep"};
inline const std::vector<std::string> kConcurrencyModeNames = {"fixed_global", "fixed_per_rank",
                                                               "listed"};
inline const std::vector<std::string> kMappingNames = {"packed", "spread"};
inline const std::vector<std::string> kExchangeUnitNames = {"assignment", "rank"};
inline const std::vector<std::string> kGroupsNames = {"fill", "single"};
inline const std::vector<std::string> kWeightCacheNames = {"flush", "warm"};
inline const std::vector<std::string> kCeilingsNames = {"measure", "skip"};
inline const std::vector<std::string> kLaunchNames = {"direct", "graph"};
inline const std::vector<std::string> kDTypeNames = {"bf16", "fp32", "fp8", "fp8_block128"};

inline const std::string& to_string(ConcurrencyMode mode) {
  return kConcurrencyModeNames[static_cast<std::size_t>(mode)];
}
inline const std::string& to_string(Mapping mapping) {
  return kMappingNames[static_cast<std::size_t>(mapping)];
}
inline const std::string& to_string(ExchangeUnit unit) {
  return kExchangeUnitNames[static_cast<std::size_t>(unit)];
}
inline const std::string& to_string(Groups groups) {
  return kGroupsNames[static_cast<std::size_t>(groups)];
}
inline const std::string& to_string(WeightCache cache) {
  return kWeightCacheNames[static_cast<std::size_t>(cache)];
}
inline const std::string& to_string(Explain explain) {
  return kExplainNames[static_cast<std::size_t>(explain)];
}
inline const std::string& to_string(Ceilings ceilings) {
  return kCeilingsNames[static_cast<std::size_t>(ceilings)];
}
inline const std::string& to_string(Launch launch) {
  return kLaunchNames[static_cast<std::size_t>(launch)];
}

// One load of the ladder.
struct Concurrency {
  ConcurrencyMode mode = ConcurrencyMode::fixed_global;
  std::int64_t tokens = 0;                    // tokens_global or tokens_per_rank, as the mode says
  std::vector<std::int64_t> tokens_per_rank;  // of `listed` only
};

// A distribution with its parameters, defaults filled in, in the catalog's order.
struct Routing {
  struct Param {
    std::string name;
    double value = 0;
  };
  std::string distribution;
  std::vector<Param> params;
  std::string file;           // of recorded distributions
  std::string file_checksum;  // of its content: what makes two recordings different

  double param(const std::string& name) const;  // throws RunError for a name that is not there
  // For parameters that need not be said.
  double param_or(const std::string& name, double otherwise) const;
  std::string label() const;  // "zipf(zipf_alpha=1.2)"
};

// Another trace than the point's own, by what differs from it.
struct TraceChoice {
  std::optional<Routing> routing;
  std::optional<std::int64_t> step;
  std::optional<std::uint64_t> seed;
  std::optional<std::int64_t> tokens;  // tokens_global
};

// A placement, and how many slots it has beyond one for each expert.
struct PlacementChoice {
  std::string name;
  int redundant_slots = 0;
  std::shared_ptr<const PlacementMap> map;  // of `map` only
  // The trace it is fitted to, where that is not the point's own; of fitted placements only.
  std::optional<TraceChoice> fit_on;
};

// Iterations beyond the fewest, until the median of the slowest rank's time is known well enough.
struct IterationTarget {
  double precision = 0.02;  // half the 95 % interval of the median / the median
  int most = 10'000;
  double limit_s = 30;  // of a pass
};

struct SweepSpec {
  std::string name;
  std::string description;
  ModelShape model;
  std::vector<int> ep_sizes;
  std::vector<Concurrency> concurrency;
  std::vector<Routing> routing;
  // Every count of `redundant_slots` with the placements that take them; the others once, with
  // none.
  std::vector<PlacementChoice> placement;
  std::optional<TraceChoice> judge_on;  // the trace placements are scored on; absent: the own one
  std::vector<ExchangeUnit> exchange_unit = {ExchangeUnit::assignment};
  std::vector<std::string> transport;
  // Of transports of fixed capacity: rows of a pair of ranks / their mean; absent: what fits.
  std::optional<double> capacity_factor;
  std::vector<Launch> launch = {Launch::direct};
  std::vector<std::string> grouped_gemm;
  std::vector<DType> dtype;
  std::vector<Mapping> mapping;
  Topology topology;  // declared; of `run` the ranks' real hosts where it is not
  Groups groups = Groups::fill;
  WeightCache weight_cache = WeightCache::flush;
  Ceilings ceilings = Ceilings::measure;
  Explain explain = Explain::bridges;
  bool allow_empty_ranks = false;  // EP sizes above num_experts: ranks without experts join in
  int layers = 1;
  int vary_routing = 1;  // steps that iterations go through; 1: all see the same
  int warmup = 2;
  int iterations = 20;  // of each pass; the fewest where there is a target
  std::optional<IterationTarget> iteration_target;
  int repeats = 1;
  std::uint64_t seed = 1;
  std::int64_t step = 0;  // which step of the request stream the routing is drawn for
  std::optional<HardwareShape> hardware;
  std::optional<Serving> serving;              // only with hardware whose memory is known
  std::optional<double> latency_objective_us;  // per layer, slowest rank's p50; not with limits
  std::optional<Limits> limits;                // absent: no search beyond the ladder
  std::shared_ptr<const SimCosts> sim;         // null where nothing is declared
};

// Where names and files of an experiment are looked up.
struct SpecSources {
  std::string models_dir;  // holds NAME.yaml
  Catalogs catalogs;
  std::string hardware_dir = {};  // the same of hardware
};

// Reads an experiment; `overrides` are "dotted.path=value" and win over the file.
// Throws ConfigError: file, line, dotted path, what is wrong, nearest valid name.
SweepSpec read_sweep_spec(std::string_view text, const std::string& file,
                          const std::vector<std::string>& overrides, const SpecSources& sources);

Json routing_json(const Routing& routing);
Json iteration_target_json(const std::optional<IterationTarget>& target);
// Only what was chosen; null where nothing was.
Json trace_choice_json(const std::optional<TraceChoice>& choice);
// Every effective value, defaults included.
Json sweep_spec_json(const SweepSpec& spec);

}  // namespace epsweep
