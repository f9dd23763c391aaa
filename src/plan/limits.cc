#include "plan/limits.h"

namespace epsweep {

int fewest_samples(Percentile percentile) {
  switch (percentile) {
    case Percentile::p50:
      return 1;
    case Percentile::p90:
      return 10;
    case Percentile::p99:
      break;
  }
  return 100;
}

std::optional<double> Limits::objective_s() const {
  if (tpot_ms) return *tpot_ms * 1e-3;
  if (tokens_per_s_per_user) return 1 / *tokens_per_s_per_user;
  return std::nullopt;
}

double tpot_s(const Limits& limits, double layer_s) {
  return limits.layers * (layer_s + limits.other_layer_us * 1e-6);
}

std::optional<double> layer_objective_s(const Limits& limits) {
  const std::optional<double> objective_s = limits.objective_s();
  if (!objective_s) return std::nullopt;
  return *objective_s / limits.layers - limits.other_layer_us * 1e-6;
}

const std::vector<std::string>& limits_keys() {
  static const std::vector<std::string> keys = {
      "tpot_ms", "tokens_per_s_per_user", "percentile", "other_layer_us", "layers", "resolution"};
  return keys;
}

Json limits_json(const std::optional<Limits>& limits) {
  if (!limits.has_value()) return nullptr;
  return {{"tpot_ms", json_or_null(limits->tpot_ms)},
          {"tokens_per_s_per_user", json_or_null(limits->tokens_per_s_per_user)},
          {"percentile", to_string(limits->percentile)},
          {"other_layer_us", limits->other_layer_us},
          {"layers", limits->layers},
          {"resolution", limits->resolution}};
}

}  // namespace epsweep
