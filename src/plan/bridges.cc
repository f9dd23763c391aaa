#include "plan/bridges.h"

#include <algorithm>
#include <set>

#include "base/local_copy.h"

namespace epsweep {
namespace {

SweepPoint with_contiguous_experts(SweepPoint point) {
  point.placement = "contiguous";
  point.redundant_slots = 0;
  point.placement_map = nullptr;
  point.fit_on = std::nullopt;
  return point;
}

SweepPoint with_local_copies(SweepPoint point) {
  point.transport = kLocalCopy;
  point.capacity_factor = std::nullopt;  // of exact row counts
  return point;
}

bool is_first_placement(const SweepSpec& spec, const SweepPoint& point) {
  const PlacementChoice& first = spec.placement.front();
  return point.placement == first.name && point.redundant_slots == first.redundant_slots;
}

// Once for all transports: what is copied is the same.
bool copies_explain(const SweepSpec& spec, const SweepPoint& point) {
  const bool is_asked = std::ranges::find(spec.transport, kLocalCopy) != spec.transport.end();
  return !is_asked && point.transport == spec.transport.front() && point.launch == Launch::direct;
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
  const bool first_placement = is_first_placement(spec, point);
  if (first_placement && !contiguous_asked) add(with_contiguous_experts(point));
  if (first_routing && first_placement && copies_explain(spec, point)) {
    add(with_local_copies(point));
  }
  return points;
}

}  // namespace epsweep
