#include "app/prediction_source.h"

#include <fmt/format.h>

#include "app/experiment.h"
#include "app/virtual_ranks.h"
#include "base/error.h"
#include "base/local_copy.h"

namespace epsweep {
namespace {

constexpr double kUsPerS = 1e6;

// As the groups of a point reach their ranks; of those in one domain within.
void check_boundaries(const StageCosts& costs, const SweepPoint& point, int num_ranks) {
  const GroupLayout layout = group_layout(num_ranks, point.ep_size, point.mapping, point.groups);
  for (int group = 0; group < layout.num_groups; ++group) {
    const GroupPlaces places = group_places(point.topology, members(layout, group));
    const ExchangeDemand demand{
        .ep_size = point.ep_size,
        .reach = places.num_domains > 1 ? Reach::across_domains : Reach::within_domain,
        .bytes = {}};
    for (const ExchangeModel* model : {&costs.dispatch, &costs.combine}) {
      const ExchangeForecast forecast = forecast_exchange(*model, demand);
      if (!forecast.time) throw ConfigError(point_label(point) + ": " + forecast.refusal);
    }
  }
}

std::optional<double> us_of(const PointSummary* summary, Stage stage) {
  if (summary == nullptr) return std::nullopt;
  const auto s = static_cast<std::size_t>(stage);
  const TimeSummary& times =
      summary->exchange[s] ? summary->exchange[s]->transfer_s : summary->stages[s].slowest_s;
  return times.p50 ? std::optional(*times.p50 * kUsPerS) : std::nullopt;
}

std::optional<double> layer_us(const PointSummary* summary) {
  if (summary == nullptr || !summary->period_p50_s()) return std::nullopt;
  return *summary->period_p50_s() * kUsPerS;
}

}  // namespace

std::optional<std::string> reason_not_to_predict(const SweepPoint& point) {
  if (point.transport != kLocalCopy) return std::nullopt;
  return "transport local_copy: a calibration tells what exchanges take, not their replacement";
}

void check_predictable(const Calibration& calibration, const Plan& plan, int num_ranks) {
  for (const SweepPoint& point : plan.points) {
    if (reason_not_to_plan(point) || point.ep_size > num_ranks) continue;
    if (reason_not_to_predict(point)) continue;
    const StageCosts costs = calibrated_costs(calibration, point);
    if (point.ep_size > 1) check_boundaries(costs, point, num_ranks);
  }
}

Json predicted_json(const PredictionSource& source, const PredictedSummaries& summaries,
                    const Distance& distance) {
  const bool calibrated = source.calibration.has_value();
  Json stages = Json::object();
  for (std::size_t s = 0; s < kNumStages; ++s) {
    const auto stage = static_cast<Stage>(s);
    const bool has_interval = calibrated || is_own_stage(stage);
    const auto end_us = [&](const PointSummary* end) {
      return json_or_null(has_interval ? us_of(end, stage) : std::nullopt);
    };
    stages[std::string(to_string(stage))] = {
        {"predicted_us", json_or_null(us_of(summaries.central, stage))},
        {"low_us", end_us(summaries.low)},
        {"high_us", end_us(summaries.high)}};
  }
  const auto layer_end_us = [&](const PointSummary* end) {
    return json_or_null(calibrated ? layer_us(end) : std::nullopt);
  };
  return {{"from", source.label},
          {"layer",
           {{"predicted_us", json_or_null(layer_us(summaries.central))},
            {"low_us", layer_end_us(summaries.low)},
            {"high_us", layer_end_us(summaries.high)}}},
          {"stages", std::move(stages)},
          {"exchange_doublings", calibrated ? Json(distance.exchange_doublings) : Json(nullptr)},
          {"ffn_doublings", calibrated ? Json(distance.ffn_doublings) : Json(nullptr)},
          {"ffn_basis", calibrated ? Json(to_string(distance.ffn_basis)) : Json(nullptr)}};
}

void put_measured_compute(const VirtualPoint& measured, Json& prediction) {
  const std::size_t shards = measured.shards->measured().size();
  const auto ep_size = static_cast<std::size_t>(measured.shards->ep_size());
  prediction["label"] = kVirtualLabel;
  prediction["virtual"] = measured.facts;
  prediction["ffn_doublings"] = 0;
  prediction["ffn_basis"] =
      shards == ep_size
          ? fmt::format("measured: all {} ranks", ep_size)
          : fmt::format("measured: {} of {} ranks, others between them by rows", shards, ep_size);
}

}  // namespace epsweep
