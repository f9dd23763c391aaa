#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const std::optional<double> token_s = facts.tpot_s();
  if (!token_s.has_value()) return std::nullopt;
  return *token_s * 1e3;
}

const bool registered = MetricCatalog::instance().add(
    {"tpot_ms", "ms", Better::lower,
     "limits.layers * (layer at limits.percentile + limits.other_layer_us): time per output token "
     "of the whole model; null without limits",
     compute});

}  // namespace
}  // namespace epsweep
