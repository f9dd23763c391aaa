#include "plan/sweep_spec.h"

#include <algorithm>
#include <filesystem>

namespace epsweep {
namespace {

Json concurrency_json(const SweepSpec& spec) {
  Json json = Json::object();
  for (const Concurrency& load : spec.concurrency) {
    json[to_string(load.mode)].push_back(
        load.mode == ConcurrencyMode::listed ? Json(load.tokens_per_rank) : Json(load.tokens));
  }
  return json;
}

void add_once(const Json& value, Json& list) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

}  // namespace

Json routing_json(const Routing& routing) {
  Json json = {{"distribution", routing.distribution}};
  for (const Routing::Param& param : routing.params) {
    const auto whole = static_cast<std::int64_t>(param.value);
    json[param.name] = static_cast<double>(whole) == param.value ? Json(whole) : Json(param.value);
  }
  if (!routing.file.empty()) {
    json["file"] = std::filesystem::path(routing.file).filename().string();
    json["file_checksum"] = routing.file_checksum;
  }
  return json;
}

Json iteration_target_json(const std::optional<IterationTarget>& target) {
  if (!target.has_value()) return nullptr;
  return {{"precision", target->precision}, {"most", target->most}, {"limit_s", target->limit_s}};
}

Json trace_choice_json(const std::optional<TraceChoice>& choice) {
  if (!choice.has_value()) return nullptr;
  Json json = choice->routing.has_value() ? routing_json(*choice->routing) : Json::object();
  if (choice->step.has_value()) json["step"] = *choice->step;
  if (choice->seed.has_value()) json["seed"] = *choice->seed;
  if (choice->tokens.has_value()) json["tokens"] = *choice->tokens;
  return json;
}

Json sweep_spec_json(const SweepSpec& spec) {
  Json routing = Json::array(), dtypes = Json::array(), mappings = Json::array();
  for (const Routing& one : spec.routing) routing.push_back(routing_json(one));
  for (const DType dtype : spec.dtype) dtypes.push_back(to_string(dtype));
  for (const Mapping mapping : spec.mapping) mappings.push_back(to_string(mapping));
  Json units = Json::array();
  for (const ExchangeUnit unit : spec.exchange_unit) units.push_back(to_string(unit));
  Json launches = Json::array();
  for (const Launch launch : spec.launch) launches.push_back(to_string(launch));
  Json placements = Json::array(), redundant_slots = Json::array();
  Json fit_on = nullptr;
  for (const PlacementChoice& choice : spec.placement) {
    if (choice.fit_on.has_value()) fit_on = trace_choice_json(choice.fit_on);
    if (choice.map == nullptr) {
      add_once(choice.name, placements);
      add_once(choice.redundant_slots, redundant_slots);
    } else {
      placements.push_back(placement_map_json(choice.map));
      placements.back()["policy"] = choice.name;
    }
  }
  return {{"name", spec.name},
          {"description", spec.description},
          {"model", model_shape_json(spec.model)},
          {"ep_sizes", spec.ep_sizes},
          {"concurrency", concurrency_json(spec)},
          {"routing", std::move(routing)},
          {"placement", std::move(placements)},
          {"redundant_slots", std::move(redundant_slots)},
          {"fit_on", std::move(fit_on)},
          {"judge_on", trace_choice_json(spec.judge_on)},
          {"exchange_unit", std::move(units)},
          {"transport", spec.transport},
          {"capacity_factor", json_or_null(spec.capacity_factor)},
          {"launch", std::move(launches)},
          {"grouped_gemm", spec.grouped_gemm},
          {"dtype", std::move(dtypes)},
          {"mapping", std::move(mappings)},
          {"topology", topology_json(spec.topology)},
          {"groups", to_string(spec.groups)},
          {"weight_cache", to_string(spec.weight_cache)},
          {"ceilings", to_string(spec.ceilings)},
          {"explain", to_string(spec.explain)},
          {"allow_empty_ranks", spec.allow_empty_ranks},
          {"layers", spec.layers},
          {"vary_routing", spec.vary_routing},
          {"warmup", spec.warmup},
          {"iterations", spec.iterations},
          {"iteration_target", iteration_target_json(spec.iteration_target)},
          {"repeats", spec.repeats},
          {"seed", spec.seed},
          {"step", spec.step},
          {"hardware", spec.hardware ? hardware_json(*spec.hardware) : Json(nullptr)},
          {"serving", spec.serving ? serving_json(*spec.serving) : Json(nullptr)},
          {"latency_objective_us", json_or_null(spec.latency_objective_us)},
          {"limits", limits_json(spec.limits)},
          {"sim", spec.sim != nullptr ? sim_costs_json(*spec.sim) : Json(nullptr)}};
}

}  // namespace epsweep
