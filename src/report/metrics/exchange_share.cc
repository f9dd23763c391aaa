#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const double exchange_s = facts.transfer_s(Stage::count_exchange).value_or(0) +
                            facts.transfer_s(Stage::dispatch).value_or(0) +
                            facts.transfer_s(Stage::combine).value_or(0);
  return rate(exchange_s, facts.summary.all_stages.slowest_s.p50);
}

const bool registered = MetricCatalog::instance().add(
    {"exchange_share", "1", Better::neither,
     "(transfer p50 of count_exchange + dispatch + combine) / all_stages p50, all aligned; what "
     "ranks wait for late ones is not in it",
     compute});

}  // namespace
}  // namespace epsweep
