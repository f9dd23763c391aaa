#include "plan/sweep_point.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace epsweep {

double Routing::param(const std::string& name) const {
  for (const Param& param : params) {
    if (param.name == name) return param.value;
  }
  throw RunError(fmt::format("distribution {} has no parameter {}", distribution, name));
}

double Routing::param_or(const std::string& name, double otherwise) const {
  const auto found = std::ranges::find(params, name, &Param::name);
  return found == params.end() ? otherwise : found->value;
}

std::string Routing::label() const {
  std::vector<std::string> parts;
  for (const Param& param : params) parts.push_back(fmt::format("{}={}", param.name, param.value));
  if (!file.empty()) {
    parts.push_back(fmt::format("file={} {}", std::filesystem::path(file).filename().string(),
                                file_checksum.substr(0, 8)));
  }
  return parts.empty() ? distribution : fmt::format("{}({})", distribution, join(parts, " "));
}

std::int64_t SweepPoint::tokens_global() const {
  switch (concurrency.mode) {
    case ConcurrencyMode::fixed_global:
      return concurrency.tokens;
    case ConcurrencyMode::fixed_per_rank:
      return concurrency.tokens * ep_size;
    case ConcurrencyMode::listed:
      break;
  }
  return std::accumulate(concurrency.tokens_per_rank.begin(), concurrency.tokens_per_rank.end(),
                         std::int64_t{0});
}

SweepPoint at_step_of(SweepPoint point, int routing) {
  point.step += routing / point.layers;
  return point;
}

std::vector<std::int64_t> near_equal_split(std::int64_t total, int parts) {
  EPS_EXPECT(total >= 0 && parts >= 1, "split of a negative total or into no parts");
  std::vector<std::int64_t> shares(static_cast<std::size_t>(parts), total / parts);
  for (std::size_t i = 0; i < static_cast<std::size_t>(total % parts); ++i) ++shares[i];
  return shares;
}

std::vector<TokenRange> token_ranges(const SweepPoint& point) {
  const std::vector<std::int64_t> shares =
      point.concurrency.mode == ConcurrencyMode::listed
          ? point.concurrency.tokens_per_rank
          : near_equal_split(point.tokens_global(), point.ep_size);
  std::vector<TokenRange> ranges;
  std::int64_t begin = 0;
  for (const std::int64_t share : shares) {
    ranges.push_back({begin, begin + share});
    begin += share;
  }
  return ranges;
}

std::string point_id(const SweepPoint& point) {
  Json axes = point_axes_json(point);
  axes.erase("index");
  if (point.hardware) axes["hardware"] = hardware_json(*point.hardware);
  return text_checksum(to_json_line(axes) + to_json_line(model_shape_json(point.model)));
}

std::string placement_label(const SweepPoint& point) {
  if (point.placement_map != nullptr) {
    return fmt::format("{}({})", point.placement, point.placement_map->label());
  }
  if (point.redundant_slots == 0) return point.placement;
  return fmt::format("{}+{}", point.placement, point.redundant_slots);
}

std::string point_label(const SweepPoint& point) {
  const std::string load = point.concurrency.mode == ConcurrencyMode::listed
                               ? fmt::format("{} tokens", point.tokens_global())
                               : std::to_string(point.concurrency.tokens);
  const char* const unit = point.exchange_unit == ExchangeUnit::rank ? " unit rank" : "";
  const char* const launch = point.launch == Launch::graph ? " launch graph" : "";
  const char* const again = point.attempt > 1 ? " again" : "";
  return fmt::format("EP{} {} {} {} {} {} {}{}{}{}", point.ep_size,
                     to_string(point.concurrency.mode), load, point.routing.label(),
                     placement_label(point), point.transport, point.grouped_gemm, unit, launch,
                     again);
}

std::optional<std::string> infeasible_reason(const SweepPoint& point) {
  if (point.ep_size > point.model.num_experts + point.redundant_slots && !point.allow_empty_ranks) {
    return fmt::format(
        "ep_size {} exceeds the {} experts of {}; allow_empty_ranks: true runs it "
        "with {} ranks that own none",
        point.ep_size, point.model.num_experts, point.model.name,
        point.ep_size - point.model.num_experts - point.redundant_slots);
  }
  if (point.concurrency.mode == ConcurrencyMode::listed &&
      point.concurrency.tokens_per_rank.size() != static_cast<std::size_t>(point.ep_size)) {
    return fmt::format("tokens_per_rank lists {} ranks, ep_size is {}",
                       point.concurrency.tokens_per_rank.size(), point.ep_size);
  }
  if (const int ranks = point.topology.num_ranks(); ranks > 0 && point.ep_size > ranks) {
    return fmt::format("ep_size {} needs more than the {} ranks of the topology", point.ep_size,
                       ranks);
  }
  // Row positions are 32-bit; one rank may receive every row of its group.
  const std::int64_t rows = point.tokens_global() * point.model.top_k;
  if (rows > INT32_MAX) {
    return fmt::format("{} tokens x top_k {} are {} rows, more than 2^31-1", point.tokens_global(),
                       point.model.top_k, rows);
  }
  return std::nullopt;
}

Json point_axes_json(const SweepPoint& point) {
  return {
      {"index", point.index},
      {"ep_size", point.ep_size},
      {"concurrency", to_string(point.concurrency.mode)},
      {"tokens_global", point.tokens_global()},
      {"tokens", point.concurrency.mode == ConcurrencyMode::listed
                     ? Json(point.concurrency.tokens_per_rank)
                     : Json(point.concurrency.tokens)},
      {"routing", routing_json(point.routing)},
      {"placement", point.placement},
      {"redundant_slots", point.redundant_slots},
      {"placement_map", placement_map_json(point.placement_map)},
      {"fit_on", trace_choice_json(point.fit_on)},
      {"judge_on", trace_choice_json(point.judge_on)},
      {"exchange_unit", to_string(point.exchange_unit)},
      {"transport", point.transport},
      {"capacity_factor", json_or_null(point.capacity_factor)},
      {"launch", to_string(point.launch)},
      {"grouped_gemm", point.grouped_gemm},
      {"dtype", to_string(point.dtype)},
      {"mapping", to_string(point.mapping)},
      {"topology", topology_json(point.topology)},
      {"groups", to_string(point.groups)},
      {"weight_cache", to_string(point.weight_cache)},
      {"allow_empty_ranks", point.allow_empty_ranks},
      {"layers", point.layers},
      {"vary_routing", point.vary_routing},
      {"warmup", point.warmup},
      {"iterations", point.iterations},
      {"iteration_target", iteration_target_json(point.iteration_target)},
      {"repeat", point.repeat},
      {"attempt", point.attempt},
      {"seed", point.seed},
      {"step", point.step},
      {"hardware", point.hardware ? Json(point.hardware->name) : Json(nullptr)},
      {"serving", point.serving ? serving_json(*point.serving) : Json(nullptr)},
      {"latency_objective_us", json_or_null(point.latency_objective_us)},
      {"limits", limits_json(point.limits)},
      {"sim", point.sim != nullptr ? sim_costs_json(*point.sim) : Json(nullptr)},
  };
}

Json sweep_point_json(const SweepPoint& point) {
  Json json = point_axes_json(point);
  json["model"] = model_shape_json(point.model);
  if (point.hardware) json["hardware"] = hardware_json(*point.hardware);
  return json;
}

}  // namespace epsweep
