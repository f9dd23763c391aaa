#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const auto tokens = static_cast<double>(facts.point.tokens_global());
  return rate(tokens / facts.point.ep_size, facts.tpot_s());
}

const bool registered = MetricCatalog::instance().add(
    {"model_tokens_per_s_per_rank", "tokens/s", Better::higher,
     "tokens_global / ep_size / tpot: of the whole model, where tokens_per_s_per_rank is of one "
     "layer; draft tokens are counted like others; null without limits",
     compute});

}  // namespace
}  // namespace epsweep
