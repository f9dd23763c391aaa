#include <algorithm>
#include <map>

#include "report/frontier_records.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

Json estimate_json(const Estimate& estimate, double unit = 1) {
  return {{"median", estimate.median * unit},
          {"low", estimate.interval.low * unit},
          {"high", estimate.interval.high * unit}};
}

Json load_json(const FrontierLoad& load, int ep_size) {
  return {{"tokens_global", load.tokens_global},
          {"tokens_per_rank", static_cast<double>(load.tokens_global) / ep_size},
          {"num_repeats", load.num_repeats},
          {"tpot_ms", estimate_json(load.tpot_s, 1e3)},
          {"tokens_per_s_per_user", estimate_json(load.user_rate)},
          {"model_tokens_per_s_per_rank", estimate_json(load.rank_rate)}};
}

Json curve_json(const FrontierCurve& curve) {
  Json loads = Json::array(), repeats = Json::array();
  for (const FrontierLoad& load : loads_of(curve)) loads.push_back(load_json(load, curve.ep_size));
  for (const RepeatCurve& repeat : curve.repeats) {
    repeats.push_back(
        {{"admitted_tokens_global", json_or_null(repeat.admitted)},
         {"stopped_by", repeat.stopped_by.empty() ? Json(nullptr) : Json(repeat.stopped_by)}});
  }
  return {{"ep_size", curve.ep_size}, {"repeats", std::move(repeats)}, {"loads", std::move(loads)}};
}

Json gain_json(const FrontierGain& gain) {
  Json json = {{"ep_size", gain.b_ep_size},
               {"against_ep_size", gain.a_ep_size},
               {"tokens_per_s_per_user", gain.user_rate},
               {"why_not", gain.why_not.empty() ? Json(nullptr) : Json(gain.why_not)},
               {"ratio", nullptr},
               {"shown", nullptr}};
  if (!gain.why_not.empty()) return json;
  json["ratio"] = {
      {"median", gain.ratio}, {"low", gain.interval.low}, {"high", gain.interval.high}};
  json["shown"] = kShownNames[static_cast<std::size_t>(gain.shown)];
  return json;
}

Json frontier_json(const Frontier& frontier) {
  const Json& point = frontier.example.record->at("point");
  Json axes = Json::object();
  for (const Axis& axis : table_axes()) {
    if (is_repeat_axis(axis)) continue;
    axes[axis.name] = axis.text(frontier.example);
  }
  Json json = {{"model", plain_text(find_value(point, "model.name"))},
               {"concurrency", find_text(point, "concurrency")},
               {"axes", std::move(axes)},
               {"limits", limits_json(frontier.limits)},
               {"curves", Json::array()},
               {"gains", Json::array()}};
  for (const FrontierCurve& curve : frontier.curves) json["curves"].push_back(curve_json(curve));
  for (const FrontierGain& gain : gains_of(frontier)) json["gains"].push_back(gain_json(gain));
  return json;
}

}  // namespace

Json frontiers_json(const std::vector<RunData>& runs) {
  // Without an identity a run stands alone.
  std::vector<std::string> order;
  std::map<std::string, std::vector<TableRow>> rows_of;
  for (const RunData& run : runs) {
    const std::string identity = plain_text(find_value(run.run, "identity"));
    const std::string key = identity.empty() ? "in " + run.dir : identity;
    if (!rows_of.contains(key)) order.push_back(key);
    for (const Json& record : run.points) rows_of[key].push_back({&record, run.dir});
  }
  Json json = Json::array();
  for (const std::string& key : order) {
    for (const Frontier& frontier : frontiers_of(rows_of[key])) {
      json.push_back(frontier_json(frontier));
    }
  }
  return json;
}

}  // namespace epsweep
