// What a family's model code does and its config.json does not say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/model_shape.h"

namespace epsweep {

// A rule counts only where the config is silent. An absent rule means that the family's configs
// state the fact, so that silence is an error.
struct ModelFamily {
  enum class Shared {
    stated,  // the config must say
    none,
    one_expert,   // one shared expert as wide as a routed one
    dense_block,  // a dense block of intermediate_size beside the experts
  };
  enum class Attention {
    plain,       // every layer's cache grows with each token, unless a sliding window is stated
    full,        // every layer's cache grows; a stated window is the context length or not in force
    listed,      // only some layers' caches grow, and the config must list which
    compressed,  // the cache per token depends on the context
  };

  std::string model_type;
  std::optional<Scoring> scoring;
  std::optional<bool> renormalize, selection_bias;
  std::optional<double> scale;
  bool ungrouped = false;                 // the router knows no expert groups
  bool experts_use_intermediate = false;  // intermediate_size is the width of an expert
  bool gated = false;                     // three GEMMs, whatever the activation is called
  bool all_layers_moe = false;
  Shared shared = Shared::stated;
  Attention attention = Attention::plain;
  std::vector<std::string> notes;

  std::string rule() const { return "family rule for " + model_type; }
};

// The first of the model types that has rules; a family without rules of its own otherwise.
ModelFamily find_model_family(const std::vector<std::string>& model_types);

}  // namespace epsweep
