#include "report/record_limits.h"

#include <algorithm>

#include "report/record_access.h"

namespace epsweep {

std::optional<Limits> limits_of_record(const Json& record) {
  const Json* json = find_value(record, "point.limits");
  if (json == nullptr) return std::nullopt;
  const auto name = std::ranges::find(kPercentileNames, find_text(*json, "percentile"));
  const auto layers = find_number(*json, "layers");
  if (name == kPercentileNames.end() || !layers) return std::nullopt;
  Limits limits;
  limits.tpot_ms = find_number(*json, "tpot_ms");
  limits.tokens_per_s_per_user = find_number(*json, "tokens_per_s_per_user");
  limits.percentile = static_cast<Percentile>(name - kPercentileNames.begin());
  limits.other_layer_us = find_number(*json, "other_layer_us").value_or(0);
  limits.layers = static_cast<int>(std::clamp(*layers, 1.0, 1e6));
  limits.resolution = find_number(*json, "resolution").value_or(limits.resolution);
  return limits;
}

bool is_within_objective(const Json& record) {
  if (!has_row(record)) return false;
  const auto layer_us = [&record](Percentile percentile) {
    return find_number(record, "layer.slowest_us." + to_string(percentile));
  };
  if (const auto objective_us = find_number(record, "point.latency_objective_us")) {
    const auto p50_us = layer_us(Percentile::p50);
    if (!p50_us || *p50_us > *objective_us) return false;
  }
  const std::optional<Limits> limits = limits_of_record(record);
  if (!limits || !limits->objective_s()) return true;
  const auto us = layer_us(limits->percentile);
  return us && tpot_s(*limits, *us * 1e-6) <= *limits->objective_s();
}

}  // namespace epsweep
