#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  return rate(facts.b_remote_bytes_per_layer() / facts.point.ep_size / 1e9,
              facts.transfer_s(Stage::dispatch));
}

const bool registered = MetricCatalog::instance().add(
    {"dispatch_b_remote_gb_per_s_per_rank", "GB/s", Better::higher,
     "letter B without self: (b_copies - b_self_copies) * row_bytes of a group per "
     "layer / (ep_size * transfer p50 of dispatch) / 1e9; metadata not counted; waiting for late ranks is not in "
     "it; null without remote bytes, and with exchange_unit assignment",
     compute});

}  // namespace
}  // namespace epsweep
