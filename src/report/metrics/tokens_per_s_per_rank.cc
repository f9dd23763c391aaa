#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const auto tokens = static_cast<double>(facts.num_groups * facts.point.tokens_global());
  const std::optional<double> tokens_per_s = rate(tokens, facts.summary.period_p50_s());
  return rate(tokens_per_s.value_or(0), facts.num_active_ranks);
}

const bool registered = MetricCatalog::instance().add(
    {"tokens_per_s_per_rank", "tokens/s", Better::higher,
     "num_groups * tokens_global / layer p50 / (num_groups * ep_size): the divisor "
     "is the ranks of the groups that run; idle ranks are not in it",
     compute});

}  // namespace
}  // namespace epsweep
