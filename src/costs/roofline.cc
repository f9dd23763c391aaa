#include "costs/roofline.h"

#include <algorithm>

namespace epsweep {

FfnTimes ffn_times(const FfnWork& work, const RankRates& rates) {
  return {.weight_s = static_cast<double>(work.weight_bytes + work.weight_scale_bytes) /
                      rates.read_bytes_per_s,
          .compute_s = static_cast<double>(work.flops) / rates.flop_per_s};
}

double FfnRoofline::attainable_flop_per_s() const {
  return std::min(rates.flop_per_s, rates.read_bytes_per_s * intensity());
}

RooflineBound FfnRoofline::bound() const {
  return rates.read_bytes_per_s * intensity() < rates.flop_per_s ? RooflineBound::memory
                                                                 : RooflineBound::compute;
}

std::optional<FfnRoofline> ffn_roofline(const FfnWork& work, const ModelShape& model, DType dtype,
                                        int layers, double seconds, const RankRates& rates) {
  const bool has_rates = rates.flop_per_s > 0 && rates.read_bytes_per_s > 0;
  if (work.flops <= 0 || layers <= 0 || !(seconds > 0) || !has_rates) return std::nullopt;
  const auto per_layer = [layers](std::int64_t sum) { return static_cast<double>(sum) / layers; };
  // In and out of the two products: rows of expert_io_dim both times.
  const std::int64_t row_bytes = 2 * model.expert_io_dim * bytes_of(row_dtype(dtype));
  return FfnRoofline{.flops = per_layer(work.flops),
                     .weight_bytes = per_layer(work.weight_bytes + work.weight_scale_bytes),
                     .activation_bytes = per_layer(work.routed_rows * row_bytes),
                     .seconds = seconds,
                     .rates = rates};
}

}  // namespace epsweep
