// Which layers of a config.json have experts.
#pragma once

#include <cstdint>

#include "plan/model_import_config.h"
#include "plan/model_import_families.h"

namespace epsweep {

struct LayerCounts {
  Fact<std::int64_t> layers, moe_layers;
};

// Every key that says something about layers takes part; keys that contradict each other, and a
// config that does not settle the question, are errors.
LayerCounts count_layers(const HfConfig& config, const ModelFamily& family);

}  // namespace epsweep
