#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const double exchange_s = facts.slowest_s(Stage::count_exchange).p50.value_or(0) +
                            facts.slowest_s(Stage::dispatch).p50.value_or(0) +
                            facts.slowest_s(Stage::combine).p50.value_or(0);
  return rate(exchange_s, facts.summary.layer.slowest_s.p50);
}

const bool registered = MetricCatalog::instance().add(
    {"exchange_share", "1", Better::neither,
     "(slowest ranks' p50 of count_exchange + dispatch + combine) / layer p50; each "
     "p50 is of the rank slowest in that stage and includes waiting, so shares may "
     "add up to more than 1",
     compute});

}  // namespace
}  // namespace epsweep
