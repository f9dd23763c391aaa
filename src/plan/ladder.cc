#include "plan/ladder.h"

#include <utility>

#include <fmt/format.h>

namespace epsweep {

std::string LadderStop::beyond() const {
  return fmt::format("beyond {} tokens: {} stopped the series", at_tokens, to_string(kind));
}

Json ladder_stop_json(const std::optional<LadderStop>& stop) {
  if (!stop.has_value()) return nullptr;
  return {
      {"kind", to_string(stop->kind)}, {"at_tokens", stop->at_tokens}, {"reason", stop->reason}};
}

std::string series_key(const SweepPoint& point) {
  Json axes = point_axes_json(point);
  axes.erase("index");
  axes.erase("attempt");
  if (point.concurrency.mode != ConcurrencyMode::listed) {
    axes.erase("tokens");
    axes.erase("tokens_global");
  }
  return to_json_line(axes);
}

void LadderStops::add(const SweepPoint& point, LadderStop stop) {
  const std::string key = series_key(point);
  const auto found = by_series_.find(key);
  if (found != by_series_.end() && found->second.at_tokens <= stop.at_tokens) return;
  by_series_.insert_or_assign(key, std::move(stop));
}

std::optional<LadderStop> LadderStops::below(const SweepPoint& point) const {
  const auto found = by_series_.find(series_key(point));
  if (found == by_series_.end() || point.tokens_global() <= found->second.at_tokens) {
    return std::nullopt;
  }
  return found->second;
}

Percentile objective_percentile(const SweepPoint& point) {
  return point.limits ? point.limits->percentile : Percentile::p50;
}

std::optional<LadderStop> latency_stop(const SweepPoint& point, double layer_us) {
  LadderStop stop{
      .kind = StopKind::latency_objective, .at_tokens = point.tokens_global(), .reason = ""};
  if (point.latency_objective_us && layer_us > *point.latency_objective_us) {
    stop.reason = fmt::format("layer p50 {:.1f} us exceeds the objective of {} us", layer_us,
                              *point.latency_objective_us);
    return stop;
  }
  if (!point.limits || !point.limits->objective_s()) return std::nullopt;
  const Limits& limits = *point.limits;
  const double token_s = tpot_s(limits, layer_us * 1e-6);
  if (token_s <= *limits.objective_s()) return std::nullopt;
  stop.reason = fmt::format(
      "layer {} {:.1f} us makes a TPOT of {:.2f} ms, the objective is {:.2f} ms",
      to_string(limits.percentile), layer_us, token_s * 1e3, *limits.objective_s() * 1e3);
  return stop;
}

}  // namespace epsweep
