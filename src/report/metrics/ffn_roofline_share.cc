#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  if (!facts.ffn_roofline) return std::nullopt;
  return facts.ffn_roofline->share();
}

const bool registered = MetricCatalog::instance().add(
    {"ffn_roofline_share", "1", Better::higher,
     "achieved / attainable FLOP/s of the rank slowest in expert_ffn; attainable = min(GEMM "
     "ceiling, read ceiling * flops / bytes), see ffn_roofline; null without ceilings",
     compute});

}  // namespace
}  // namespace epsweep
