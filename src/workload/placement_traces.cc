#include "workload/placement_traces.h"

#include <filesystem>

#include <fmt/format.h>

#include "workload/placement.h"

namespace epsweep {
namespace {

SweepPoint with_trace(SweepPoint point, const std::optional<TraceChoice>& choice) {
  if (!choice.has_value()) return point;
  if (choice->routing.has_value()) point.routing = *choice->routing;
  if (choice->step.has_value()) point.step = *choice->step;
  if (choice->seed.has_value()) point.seed = *choice->seed;
  if (choice->tokens.has_value()) {
    point.concurrency = {
        .mode = ConcurrencyMode::fixed_global, .tokens = *choice->tokens, .tokens_per_rank = {}};
  }
  return point;
}

// What makes `other` another trace than the point's own.
std::string trace_text(const SweepPoint& point, const SweepPoint& other) {
  std::string text = fmt::format("step {}", other.step);
  if (other.seed != point.seed) text += fmt::format(", seed {}", other.seed);
  text += other.routing.label() == point.routing.label() ? " of the same routing"
                                                         : " of " + other.routing.label();
  return text + fmt::format(", {} tokens", other.tokens_global());
}

}  // namespace

SweepPoint fitted_point(const SweepPoint& point) {
  return with_trace(point, point.fit_on);
}

SweepPoint judged_point(const SweepPoint& point) {
  return with_trace(point, point.judge_on);
}

bool is_fitted(const SweepPoint& point) {
  return PlacementCatalog::instance().at(point.placement).fitted_to != FittedTo::nothing;
}

std::vector<std::int64_t> rows_to_fit(const SweepPoint& point, int layer, TraceCache& traces) {
  if (!is_fitted(point)) return {};
  return traces.rows_of(fitted_point(point), layer);
}

std::optional<std::string> placement_fitted_on(const SweepPoint& point) {
  if (point.placement_map != nullptr) {
    return fmt::format("file {}",
                       std::filesystem::path(point.placement_map->file).filename().string());
  }
  if (!is_fitted(point)) return std::nullopt;
  if (!point.fit_on.has_value()) return "own trace (in-sample)";
  const SweepPoint fitted = fitted_point(point);
  if (trace_key(fitted) == trace_key(point)) return "own trace (in-sample)";
  return trace_text(point, fitted);
}

std::string placement_judged_on(const SweepPoint& point) {
  if (!point.judge_on.has_value()) return "own trace";
  const SweepPoint judged = judged_point(point);
  return trace_key(judged) == trace_key(point) ? "own trace" : trace_text(point, judged);
}

std::string shared_recording(const SweepPoint& point) {
  const Routing fitted = fitted_point(point).routing, judged = judged_point(point).routing;
  if (!is_fitted(point) || fitted.file.empty() || fitted.file_checksum != judged.file_checksum) {
    return "";
  }
  return std::filesystem::path(judged.file).filename().string();
}

}  // namespace epsweep
