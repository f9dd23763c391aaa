#include "plan/bridges.h"

#include <algorithm>
#include <set>

namespace epsweep {
namespace {

SweepPoint with_contiguous_experts(SweepPoint point) {
  point.placement = "contiguous";
  point.redundant_slots = 0;
  point.placement_map = nullptr;
  point.fit_on = std::nullopt;
  return point;
}

}  // namespace

std::vector<Concurrency> bridge_loads(const SweepSpec& spec, int ep_size) {
  if (spec.explain == Explain::none) return {};
  std::set<std::int64_t> asked, wanted;
  for (const Concurrency& load : spec.concurrency) {
    if (load.mode == ConcurrencyMode::fixed_global) asked.insert(load.tokens);
    if (load.mode != ConcurrencyMode::fixed_per_rank) continue;
    asked.insert(load.tokens * ep_size);
    for (const int other : spec.ep_sizes) wanted.insert(load.tokens * other);
  }
  std::vector<Concurrency> loads;
  for (const std::int64_t tokens : wanted) {
    if (asked.contains(tokens)) continue;
    loads.push_back(
        {.mode = ConcurrencyMode::fixed_global, .tokens = tokens, .tokens_per_rank = {}});
  }
  return loads;
}

std::vector<SweepPoint> counterfactuals(const SweepSpec& spec, const SweepPoint& point) {
  std::vector<SweepPoint> points;
  if (spec.explain != Explain::deep) return points;
  const auto add = [&points](SweepPoint changed) {
    changed.load_from = LoadFrom::counterfactual;
    points.push_back(std::move(changed));
  };
  const auto is_asked = [&spec](const std::string& distribution) {
    return std::ranges::any_of(
        spec.routing, [&](const Routing& routing) { return routing.distribution == distribution; });
  };
  const bool first_routing = point.routing.label() == spec.routing.front().label();
  if (first_routing && !is_asked("balanced")) {
    SweepPoint balanced = point;
    balanced.routing = {.distribution = "balanced", .params = {}, .file = {}, .file_checksum = {}};
    add(std::move(balanced));
  }
  const bool contiguous_asked = std::ranges::any_of(
      spec.placement,
      [](const PlacementChoice& placement) { return placement.name == "contiguous"; });
  const PlacementChoice& first = spec.placement.front();
  const bool first_placement =
      point.placement == first.name && point.redundant_slots == first.redundant_slots;
  if (first_placement && !contiguous_asked) add(with_contiguous_experts(point));
  return points;
}

}  // namespace epsweep
