#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  return rate(facts.a_remote_bytes_per_layer() / facts.point.ep_size / 1e9,
              facts.slowest_s(Stage::combine).p50);
}

const bool registered = MetricCatalog::instance().add(
    {"combine_a_remote_gb_per_s_per_rank", "GB/s", Better::higher,
     "letter A without self: (a_copies - a_self_copies) * row_bytes of a group per "
     "layer / (ep_size * slowest rank's combine p50) / 1e9; the time includes "
     "waiting for late ranks; null without remote bytes, and with exchange_unit rank",
     compute});

}  // namespace
}  // namespace epsweep
