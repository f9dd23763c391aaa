#include "report/prediction_json.h"

#include "costs/exchange_model.h"
#include "costs/point_prediction.h"

namespace epsweep {
namespace {

constexpr double kUsPerS = 1e6;

std::optional<double> measured_transfer_s(const PointRecordInput& input, Stage stage) {
  if (!has_times(input.state)) return std::nullopt;
  const auto& exchange = input.timings->exchange[static_cast<std::size_t>(stage)];
  return exchange ? exchange->transfer_s.p50 : std::nullopt;
}

// predicted_us, measured_us and error, put in front of the other members.
Json beside(double predicted_s, const std::optional<double>& measured_s, Json more) {
  Json json = {
      {"predicted_us", predicted_s * kUsPerS}, {"measured_us", nullptr}, {"error", nullptr}};
  if (measured_s) {
    json["measured_us"] = *measured_s * kUsPerS;
    if (predicted_s > 0) json["error"] = *measured_s / predicted_s - 1;
  }
  json.update(more);
  return json;
}

Json exchange_json(const std::optional<PredictedExchange>& exchange,
                   const std::optional<double>& measured_s) {
  if (!exchange) return nullptr;
  return beside(exchange->seconds(), measured_s,
                {{"alpha_us", exchange->alpha_s * kUsPerS},
                 {"bytes_us", exchange->bytes_s * kUsPerS},
                 {"bytes", exchange->bytes},
                 {"letter", exchange->letter}});
}

// Dispatch and combine together, and what their distance from the prediction says.
Json both_json(const PointPrediction& prediction, const std::optional<double>& dispatch_s,
               const std::optional<double>& combine_s) {
  if (!prediction.dispatch || !prediction.combine) return nullptr;
  std::optional<double> measured_s;
  if (dispatch_s && combine_s) measured_s = *dispatch_s + *combine_s;
  Json json = beside(prediction.dispatch->seconds() + prediction.combine->seconds(), measured_s,
                     {{"limit", nullptr}});
  if (json["error"].is_number()) {
    json["limit"] = to_string(exchange_limit(json["error"].get<double>()));
  }
  return json;
}

Json ffn_json(const std::optional<PredictedFfn>& ffn, const PointRecordInput& input) {
  if (!ffn) return nullptr;
  std::optional<double> measured_s;
  if (has_times(input.state)) {
    measured_s = input.timings->stages[static_cast<std::size_t>(Stage::expert_ffn)].slowest_s.p50;
  }
  return beside(ffn->seconds, measured_s,
                {{"weight_us", ffn->weight_s * kUsPerS},
                 {"compute_us", ffn->compute_s * kUsPerS},
                 {"bound", to_string(ffn->bound())},
                 {"world_rank", ffn->world_rank}});
}

}  // namespace

Json prediction_json(const PointRecordInput& input) {
  if (!input.prediction.is_null()) return input.prediction;
  if (!input.ceilings || !input.workload) return nullptr;
  const PointPrediction prediction =
      predict_point(input.point, *input.workload, input.layout, *input.ceilings);
  const auto dispatch_s = measured_transfer_s(input, Stage::dispatch);
  const auto combine_s = measured_transfer_s(input, Stage::combine);
  return {{"from", "ceilings of this run"},
          {"dispatch", exchange_json(prediction.dispatch, dispatch_s)},
          {"combine", exchange_json(prediction.combine, combine_s)},
          {"exchange", both_json(prediction, dispatch_s, combine_s)},
          {"expert_ffn", ffn_json(prediction.ffn, input)}};
}

std::string prediction_formula() {
  return "from ceilings, routing and placement alone, per layer. dispatch, combine: alpha + bytes "
         "/ "
         "beta of bare exchanges of the layout; bytes of the rank that moves most in a layer, "
         "remote copies by the letter that is sent (A with assignment, D with rank and its "
         "metadata, or what a fixed capacity pads to). exchange: both together. expert_ffn: mean "
         "over layers of the slowest rank's max(weight bytes / read ceiling, operations / GEMM "
         "ceiling). measured_us: p50 of the transfer, of expert_ffn p50 of the slowest rank. error "
         "= measured / predicted - 1. limit: within 15 % fabric-limited as modelled, above it "
         "software- or contention-limited. Of predicted points instead: from "
         "which run or hardware file, and by stage and layer what is predicted with the ends of "
         "its "
         "interval, [-3, +5] % for each doubling of EP size beyond the calibrated ones in "
         "exchanges "
         "and 7 % either way for each doubling of slots or rows in expert_ffn; by the aligned "
         "times of the calibration; spread between its repeats is not in it. label: measured "
         "compute + predicted exchange, where router, permute, expert_ffn and unpermute are not "
         "predicted but medians over iterations of shards timed on present ranks (virtual.shards: "
         "their rows and expert_ffn by routing); low and high of those are the interval of the "
         "median, of fewer than six samples the fastest and the slowest; ranks that were not timed "
         "lie on the line between timed ones by rows (expert_ffn) or are like those with the "
         "closest number of tokens";
}

}  // namespace epsweep
