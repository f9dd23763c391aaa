// What a deployment asks of every user's token, and the search for the load that still gives it:
// the key `limits` of an experiment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace epsweep {

enum class Percentile { p50, p90, p99 };
inline const std::vector<std::string> kPercentileNames = {"p50", "p90", "p99"};
inline const std::string& to_string(Percentile percentile) {
  return kPercentileNames[static_cast<std::size_t>(percentile)];
}
// Fewer samples do not give it (base/statistics.h).
int fewest_samples(Percentile percentile);

// How a point came about: by the experiment, by the search for the load at a limit, or to explain
// others (plan/bridges.h).
enum class LoadFrom { ladder, bisection, bridge, counterfactual };
inline const std::vector<std::string> kLoadFromNames = {"ladder", "bisection", "bridge",
                                                        "counterfactual"};
inline const std::string& to_string(LoadFrom from) {
  return kLoadFromNames[static_cast<std::size_t>(from)];
}

// TPOT, the time per output token, is layers * (layer period + other_layer_us), with the period of
// layers back to back (chained) at the percentile. A user gets 1 / TPOT tokens per second.
struct Limits {
  // The objective, said in one of two ways; absent: memory alone is a limit.
  std::optional<double> tpot_ms, tokens_per_s_per_user;
  Percentile percentile = Percentile::p50;
  double other_layer_us = 0;  // attention and whatever else a layer does beside its experts
  int layers = 1;             // MoE layers of the whole model
  // The search ends where the lowest load beyond a limit is at most (1 + resolution) times the
  // highest one within.
  double resolution = 0.1;

  // Longest TPOT in seconds.
  std::optional<double> objective_s() const;
};

double tpot_s(const Limits& limits, double layer_s);
// The layer period at which TPOT is just the objective.
std::optional<double> layer_objective_s(const Limits& limits);

const std::vector<std::string>& limits_keys();
Json limits_json(const std::optional<Limits>& limits);

}  // namespace epsweep
