#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  return rate(facts.a_remote_bytes_per_layer() / facts.point.ep_size / 1e9,
              facts.transfer_s(Stage::combine));
}

const bool registered = MetricCatalog::instance().add(
    {"combine_a_remote_gb_per_s_per_rank", "GB/s", Better::higher,
     "letter A without self: (a_copies - a_self_copies) * row_bytes of a group per "
     "layer / (ep_size * transfer p50 of combine) / 1e9; waiting for late ranks is not in "
     "it; null without remote bytes, and with exchange_unit rank",
     compute});

}  // namespace
}  // namespace epsweep
