#include "costs/chain_weights.h"

#include "base/chain_shape.h"

namespace epsweep {

std::string chain_weights(const SweepPoint& point, std::int64_t least_touched_bytes,
                          std::int64_t last_level_cache_bytes) {
  if (point.weight_cache == WeightCache::warm) return "warm";
  const bool read_once = chain_layers_for(point.layers) == point.layers;
  return read_once || least_touched_bytes >= 2 * last_level_cache_bytes ? "cold" : "revisited";
}

}  // namespace epsweep
