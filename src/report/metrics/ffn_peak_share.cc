#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  if (!facts.ffn_roofline) return std::nullopt;
  return facts.ffn_roofline->peak_share();
}

const bool registered = MetricCatalog::instance().add(
    {"ffn_peak_share", "1", Better::higher,
     "achieved FLOP/s of the rank slowest in expert_ffn / its GEMM ceiling of the dtype: use of "
     "the "
     "matrix units as far as a large GEMM uses them; null without ceilings",
     compute});

}  // namespace
}  // namespace epsweep
