#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const std::optional<double> p50_s = facts.summary.layer.slowest_s.p50;
  if (!p50_s.has_value()) return std::nullopt;
  return *p50_s * 1e6;
}

const bool registered = MetricCatalog::instance().add(
    {"layer_p50_us", "us", Better::lower,
     "p50 over iterations of (slowest rank's whole iteration / layers)", compute});

}  // namespace
}  // namespace epsweep
