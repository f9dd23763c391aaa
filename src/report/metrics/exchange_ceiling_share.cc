#include "report/metric.h"

namespace epsweep {
namespace {

std::optional<double> compute(const PointFacts& facts) {
  const double sent = facts.a_remote_bytes_per_layer() + facts.b_remote_bytes_per_layer();
  if (!facts.exchange_line || !(sent > 0)) return std::nullopt;
  // Combine returns what dispatch sent.
  const double predicted_s = 2 * facts.exchange_line->predict_s(sent / facts.point.ep_size);
  return rate(predicted_s, facts.slowest_s(Stage::dispatch).p50.value_or(0) +
                               facts.slowest_s(Stage::combine).p50.value_or(0));
}

const bool registered = MetricCatalog::instance().add(
    {"exchange_ceiling_share", "1", Better::higher,
     "2 * (alpha + bytes / beta) of bare exchanges / (slowest ranks' p50 of dispatch + combine), "
     "bytes = remote bytes that a rank sends on average; what is missing to 1 is waiting, skew and "
     "packing; null without ceilings or remote bytes",
     compute});

}  // namespace
}  // namespace epsweep
