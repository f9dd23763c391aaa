#include "report/times_json.h"

#include <fmt/format.h>

namespace epsweep {
namespace {

constexpr double kUsPerS = 1e6;

Json us_or_null(const std::optional<double>& seconds) {
  return seconds.has_value() ? Json(*seconds * kUsPerS) : Json(nullptr);
}

Json percentiles_json(const TimeSummary& times) {
  Json json = {{"p50", us_or_null(times.p50)},
               {"p50_low", nullptr},
               {"p50_high", nullptr},
               {"p90", us_or_null(times.p90)},
               {"p95", us_or_null(times.p95)},
               {"p99", us_or_null(times.p99)},
               {"min", us_or_null(times.min)},
               {"max", us_or_null(times.max)},
               {"num_samples", times.num_samples}};
  if (times.p50_interval.has_value()) {
    json["p50_low"] = times.p50_interval->low * kUsPerS;
    json["p50_high"] = times.p50_interval->high * kUsPerS;
  }
  return json;
}

Json summary_json(const StageSummary& summary, const char* regime,
                  const std::vector<int>& world_ranks) {
  return {{"regime", regime},
          {"slowest_us", percentiles_json(summary.slowest_s)},
          {"first_sample_us", summary.first_sample_s * kUsPerS},
          {"slowest_rank", world_ranks.at(static_cast<std::size_t>(summary.slowest_rank))},
          {"slowest_rank_share", summary.slowest_rank_share},
          {"fastest_rank_p50_us", summary.fastest_rank_p50_s * kUsPerS},
          {"slowest_rank_cpu_p50_us", summary.slowest_rank_cpu_p50_s * kUsPerS},
          {"max_of_means_us", summary.max_of_means_s * kUsPerS}};
}

// Null for a stage in which ranks do not meet.
Json exchange_json(const std::optional<ExchangeSummary>& exchange,
                   const std::vector<int>& world_ranks) {
  if (!exchange.has_value()) return nullptr;
  Json last_in = nullptr;
  if (exchange->last_in_row.has_value()) {
    last_in = world_ranks.at(static_cast<std::size_t>(*exchange->last_in_row));
  }
  return {{"transfer_us", percentiles_json(exchange->transfer_s)},
          {"skew_in_us", percentiles_json(exchange->skew_in_s)},
          {"last_in_rank", last_in},
          {"last_in_share", last_in.is_null() ? Json(nullptr) : Json(exchange->last_in_share)},
          {"wait_p50_us_of_rank", us_vector_json(exchange->wait_p50_s_of_row)}};
}

Json pass_json(const PassSummary& pass) {
  return {{"stop", pass.facts.stop.empty() ? Json(nullptr) : Json(pass.facts.stop)},
          {"precision", json_or_null(pass.facts.precision)},
          {"disturbed_share", pass.disturbed_share},
          {"undisturbed_p50_us", us_or_null(pass.undisturbed_p50_s)},
          {"first_over_p50", json_or_null(pass.first_over_p50)},
          {"drift", json_or_null(pass.drift)}};
}

}  // namespace

Json us_vector_json(const std::vector<double>& seconds) {
  Json json = Json::array();
  for (const double value : seconds) json.push_back(value * kUsPerS);
  return json;
}

Json stages_json(const PointSummary& times, const std::vector<int>& world_ranks) {
  Json stages = Json::object();
  for (std::size_t s = 0; s < kStageNames.size(); ++s) {
    Json& stage = stages[std::string(kStageNames[s])];
    stage = summary_json(times.stages[s], kAligned, world_ranks);
    stage["exchange"] = exchange_json(times.exchange[s], world_ranks);
  }
  return stages;
}

Json all_stages_json(const PointSummary& times, const std::vector<int>& world_ranks) {
  Json json = summary_json(times.all_stages, kAligned, world_ranks);
  json["pass"] = pass_json(times.pass);
  json["order_bound_us"] = times.order_bound_s * kUsPerS;
  json["p50_us_of_rank"] = us_vector_json(times.all_stages_p50_s_of_rank);
  return json;
}

Json layer_json(const PointSummary& times, const std::vector<int>& world_ranks) {
  if (!times.chain.has_value()) return nullptr;
  const ChainSummary& chain = *times.chain;
  Json json = summary_json(chain.layer, kChained, world_ranks);
  json.erase("slowest_rank_cpu_p50_us");  // a chain has no marks around what computes
  json["pass"] = pass_json(chain.pass);
  json["chain_layers"] = chain.chain_layers;
  json["fill_layers"] = chain.fill_layers;
  json["convergence"] = json_or_null(chain.convergence);
  json["weights"] = chain.weights;
  json["p50_us_of_rank"] = us_vector_json(chain.layer_p50_s_of_rank);
  return json;
}

Json entry_skew_json(const PointSummary& times) {
  const std::optional<double> period_s = times.period_p50_s();
  if (!period_s.has_value() || !times.all_stages.slowest_s.p50.has_value()) return nullptr;
  return (*period_s - *times.all_stages.slowest_s.p50) * kUsPerS;
}

std::vector<std::string> time_warnings(const PointSummary& times) {
  std::vector<std::string> warnings =
      pass_warnings("aligned stages", times.pass, times.all_stages.samples_s);
  if (!times.chain.has_value()) return warnings;
  const ChainSummary& chain = *times.chain;
  const std::vector<std::string> more =
      pass_warnings("chained layers", chain.pass, chain.layer.samples_s);
  warnings.insert(warnings.end(), more.begin(), more.end());
  return warnings;
}

Json times_formulas() {
  return {
      {"regime",
       "aligned: before each stage all ranks wait for each other, outside of the marks. chained: "
       "layers back to back, two marks around each, ranks wait for each other's rows only; the "
       "first fill_layers of a chain do not count. The two are never mixed in one number but "
       "entry_skew_us"},
      {"slowest_us",
       "per layer; sample of an iteration: of a stage the mean over layers of the maximum over "
       "ranks; of all_stages the sum of the stages' samples; of the layer the maximum over ranks "
       "of (end of the last layer of the chain - begin of the first that counts) / layers that "
       "count. Then nearest-rank percentiles over iterations; p90 needs 10 samples, p95 20, p99 "
       "100; p50_low and p50_high hold the median with 95 % confidence (order statistics) and "
       "need 6"},
      {"entry_skew_us", "layer p50 - all_stages p50: what starting together hides or costs"},
      {"exchange",
       "a = entered, b = left on the common axis, per group: skew_in = max a - min a; transfer = "
       "max b - max a; wait of a rank = max a - its a. last_in_rank came last most often in "
       "the group that waited longest, in last_in_share of the (iteration, layer)s; null "
       "where nobody was late or clocks cannot tell"},
      {"order_bound_us", "marks of two ranks that are no further apart cannot be ordered"},
      {"slowest_rank", "world rank that was slowest most often"},
      {"slowest_rank_share",
       "of the (iteration, layer)s, for layer and all_stages of the iterations, in which it was "
       "the slowest"},
      {"slowest_rank_cpu_p50_us",
       "CPU time of the slowest rank's process; in count_exchange, dispatch and combine it "
       "includes polling for messages, so that of all_stages leaves those out"},
      {"max_of_means_us", "max over ranks of a rank's mean; for comparison with other tools only"},
      {"pass",
       "stop: why iterations ended; precision: half the 95 % interval of the median / the median; "
       "disturbed_share: iterations in which a rank lost a core to another program or a device's "
       "clock was held down, which stay in all numbers but undisturbed_p50_us; drift: p50 of the "
       "last third / of the first, null where their intervals overlap"},
      {"convergence", "p50 of (later half / earlier half of the layers that count)"},
      {"weights",
       "of a chain: cold (each layer's weights once, or more of them than caches hold), revisited "
       "(read again within a chain and small enough to be cached), warm (weight_cache: warm); "
       "declared of simulated points"}};
}

}  // namespace epsweep
