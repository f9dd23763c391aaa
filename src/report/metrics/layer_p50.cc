#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const std::optional<double> p50_s = facts.summary.period_p50_s();
  if (!p50_s.has_value()) return std::nullopt;
  return *p50_s * 1e6;
}

const bool registered = MetricCatalog::instance().add(
    {"layer_p50_us", "us", Better::lower,
     "p50 over chains of the slowest rank's time per layer, layers back to back", compute});

}  // namespace
}  // namespace epsweep
