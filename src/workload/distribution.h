// Routing distributions: which experts each token picks, before any placement or EP size.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/registry.h"
#include "plan/catalogs.h"
#include "plan/model_shape.h"
#include "plan/sweep_point.h"
#include "workload/routing_note.h"

namespace epsweep {

// What a distribution may depend on. EP size, rank count and placement are not in it, so a routing
// never changes with them.
struct RoutingContext {
  int num_experts = 0;
  int top_k = 0;
  std::int64_t num_tokens = 0;  // C
  int layer = 0;
  std::int64_t step = 0;
  std::uint64_t seed = 0;
  const Routing* routing = nullptr;   // parameters and file
  const ModelShape* model = nullptr;  // for distributions that depend on more than E and k
};

// Writes the top_k distinct experts of one token, 0 <= token < num_tokens. Any token may be asked
// for in any order, from any rank.
using TokenRouter = std::function<void(std::int64_t token, std::span<std::int32_t> experts)>;

// What can be said about tokens that a point does not have.
enum class Foresight {
  sampled,          // they can be drawn like the others
  sampled_by_gate,  // so too, but each costs num_experts * hidden_dim operations
  uniform,          // all sets of top_k experts are equally likely
  recorded,         // nothing: there are no others
};

// Values of a skew parameter: from as even as the distribution gets to as skewed as it gets.
struct SkewRange {
  double even = 0, most = 0;
};

// How a distribution can be asked for by its outcome, max_over_mean: the parameter to search, and
// where. More of it means more skew, as far as chance allows.
struct SkewKnob {
  std::string param;  // empty where the distribution has none
  SkewRange (*range)(const RoutingContext& context) = nullptr;
};

struct Distribution {
  std::string name;
  std::string summary;
  std::vector<ParamSpec> params;
  // Throws ConfigError for parameters or files that do not fit the model.
  TokenRouter (*make)(const RoutingContext& context) = nullptr;
  SkewKnob skew = {};
  // What recorded data say about themselves; absent where there is nothing to say. Throws what
  // make() throws about the file.
  std::vector<RoutingNote> (*notes)(const RoutingContext& context) = nullptr;
  Foresight foresight = Foresight::sampled;
};

using DistributionCatalog = Registry<Distribution>;

}  // namespace epsweep
