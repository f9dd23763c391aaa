#include "plan/plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "plan/bridges.h"
#include "plan/plan_order.h"

namespace epsweep {
namespace {

constexpr int kMaxPoints = 100'000;
// Of all points: each has a copy of the counts by rank that it was given.
constexpr double kMaxListedCounts = 2e7;

// The axes that only change what runs, not the load: the innermost ones.
void append_variants(const SweepSpec& spec, SweepPoint point, std::vector<SweepPoint>& points) {
  for (const Routing& routing : spec.routing) {
    for (const PlacementChoice& placement : spec.placement) {
      for (const std::string& transport : spec.transport) {
        for (const ExchangeUnit unit : spec.exchange_unit) {
          for (const Launch launch : spec.launch) {
            point.routing = routing;
            point.placement = placement.name;
            point.redundant_slots = placement.redundant_slots;
            point.placement_map = placement.map;
            point.fit_on = placement.fit_on;
            point.transport = transport;
            point.exchange_unit = unit;
            point.launch = launch;
            points.push_back(point);
          }
        }
      }
    }
  }
}

void append(SweepPoint point, std::vector<SweepPoint>& points) {
  point.index = static_cast<int>(points.size());
  points.push_back(std::move(point));
}

// What explains a series, right behind it: so it meets the same weights and nearly the same
// machine.
void append_explaining(const SweepSpec& spec, const std::vector<SweepPoint>& series,
                       std::vector<SweepPoint>& points) {
  SweepPoint bridge = series.front();
  bridge.load_from = LoadFrom::bridge;
  for (const Concurrency& load : bridge_loads(spec, bridge.ep_size)) {
    bridge.concurrency = load;
    append(bridge, points);
  }
  for (const SweepPoint& point : series) {
    for (SweepPoint& other : counterfactuals(spec, point)) append(std::move(other), points);
  }
}

// Without repeats in the order of the file; see shuffled_series().
void append_repeat(const SweepSpec& spec, const std::vector<SweepPoint>& repeat,
                   std::vector<SweepPoint>& points) {
  RepeatShape shape{.num_outer = spec.mapping.size() * spec.dtype.size() *
                                 spec.grouped_gemm.size() * spec.ep_sizes.size(),
                    .num_loads = spec.concurrency.size(),
                    .num_inner = 1};
  shape.num_inner = repeat.size() / (shape.num_outer * shape.num_loads);
  std::vector<std::size_t> order(repeat.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (spec.repeats > 1) order = shuffled_series(shape, spec.seed, repeat.front().repeat);
  // Series are told apart by their place outside and inside of the loads.
  std::map<std::size_t, std::vector<SweepPoint>> series;
  for (const std::size_t position : order) {
    const std::size_t outer = position / (shape.num_loads * shape.num_inner);
    std::vector<SweepPoint>& own = series[outer * shape.num_inner + position % shape.num_inner];
    own.push_back(repeat[position]);
    append(repeat[position], points);
    if (own.size() == shape.num_loads) append_explaining(spec, own, points);
  }
}

SweepPoint fixed_part(const SweepSpec& spec) {
  SweepPoint point;
  point.model = spec.model;
  point.topology = spec.topology;
  point.judge_on = spec.judge_on;
  point.capacity_factor = spec.capacity_factor;
  point.groups = spec.groups;
  point.weight_cache = spec.weight_cache;
  point.allow_empty_ranks = spec.allow_empty_ranks;
  point.layers = spec.layers;
  point.vary_routing = spec.vary_routing;
  point.warmup = spec.warmup;
  point.iterations = spec.iterations;
  point.iteration_target = spec.iteration_target;
  point.seed = spec.seed;
  point.step = spec.step;
  point.hardware = spec.hardware;
  point.serving = spec.serving;
  point.latency_objective_us = spec.latency_objective_us;
  point.limits = spec.limits;
  point.sim = spec.sim;
  return point;
}

// A product of short lists is quickly more than anybody could run, or hold in memory.
void expect_few_points(const SweepSpec& spec) {
  double points = spec.repeats;
  for (const std::size_t size :
       {spec.mapping.size(), spec.dtype.size(), spec.grouped_gemm.size(), spec.ep_sizes.size(),
        spec.concurrency.size(), spec.routing.size(), spec.placement.size(), spec.transport.size(),
        spec.exchange_unit.size(), spec.launch.size()}) {
    points *= static_cast<double>(size);
  }
  if (points > kMaxPoints) {
    throw ConfigError(fmt::format("{}: the axes make {:.3g} points, more than {}", spec.name,
                                  points, kMaxPoints));
  }
  std::size_t longest_list = 0;
  for (const Concurrency& load : spec.concurrency) {
    longest_list = std::max(longest_list, load.tokens_per_rank.size());
  }
  if (points * static_cast<double>(longest_list) > kMaxListedCounts) {
    throw ConfigError(
        fmt::format("{}: {:.3g} points with lists of up to {} tokens_per_rank are more "
                    "than a plan can hold",
                    spec.name, points, longest_list));
  }
}

}  // namespace

Plan make_plan(const SweepSpec& spec) {
  expect_few_points(spec);
  Plan plan;
  SweepPoint point = fixed_part(spec);
  for (point.repeat = 0; point.repeat < spec.repeats; ++point.repeat) {
    std::vector<SweepPoint> repeat;
    for (const Mapping mapping : spec.mapping) {
      for (const DType dtype : spec.dtype) {
        for (const std::string& grouped_gemm : spec.grouped_gemm) {
          for (const int ep_size : spec.ep_sizes) {
            for (const Concurrency& concurrency : spec.concurrency) {
              point.mapping = mapping;
              point.dtype = dtype;
              point.grouped_gemm = grouped_gemm;
              point.ep_size = ep_size;
              point.concurrency = concurrency;
              append_variants(spec, point, repeat);
            }
          }
        }
      }
    }
    append_repeat(spec, repeat, plan.points);
  }
  Fingerprint fingerprint;
  for (const char c : to_json_line(sweep_spec_json(spec))) {
    fingerprint.add(static_cast<unsigned char>(c));
  }
  plan.fingerprint = fingerprint.value();
  return plan;
}

GroupLayout group_layout(int world_size, int ep_size, Mapping mapping, Groups groups) {
  EPS_EXPECT(ep_size >= 1 && ep_size <= world_size, "ep_size outside 1 to world_size");
  const int max_groups = world_size / ep_size;
  GroupLayout layout;
  layout.ep_size = ep_size;
  layout.num_groups = groups == Groups::fill ? max_groups : 1;
  for (int rank = 0; rank < world_size; ++rank) {
    // packed: rank = group * P + ep_rank. spread: rank = ep_rank * (W / P) + group.
    const int group = mapping == Mapping::packed ? rank / ep_size : rank % max_groups;
    const int ep_rank = mapping == Mapping::packed ? rank % ep_size : rank / max_groups;
    const bool idle = group >= layout.num_groups || ep_rank >= ep_size;
    layout.group_of_rank.push_back(idle ? -1 : group);
    layout.ep_rank_of_rank.push_back(idle ? -1 : ep_rank);
    if (idle) layout.idle_ranks.push_back(rank);
  }
  return layout;
}

std::vector<int> members(const GroupLayout& layout, int group) {
  std::vector<int> ranks(static_cast<std::size_t>(layout.ep_size), -1);
  for (std::size_t rank = 0; rank < layout.group_of_rank.size(); ++rank) {
    if (layout.group_of_rank[rank] != group) continue;
    ranks[static_cast<std::size_t>(layout.ep_rank_of_rank[rank])] = static_cast<int>(rank);
  }
  return ranks;
}

std::optional<GroupPlaces> declared_places(const SweepPoint& point) {
  if (!point.topology.declared()) return std::nullopt;
  const int described = point.topology.num_ranks();
  const GroupLayout layout = group_layout(described == 0 ? point.ep_size : described, point.ep_size,
                                          point.mapping, point.groups);
  return group_places(point.topology, members(layout, 0));
}

void check_world(const SweepSpec& spec, int world_size) {
  if (const int ranks = spec.topology.num_ranks(); ranks > 0 && ranks != world_size) {
    throw ConfigError(
        fmt::format("topology describes {} ranks but MPI started {}", ranks, world_size));
  }
  std::vector<int> too_wide, legal;
  for (const int ep_size : spec.ep_sizes) {
    (ep_size > world_size ? too_wide : legal).push_back(ep_size);
  }
  if (too_wide.empty()) return;
  throw ConfigError(fmt::format(
      "ep_sizes asks for EP {} but MPI started {} rank{}; of the EP sizes listed these fit: {}; "
      "start at least {} ranks, or pass --set ep_sizes=[...]",
      join(too_wide), world_size, world_size == 1 ? "" : "s", legal.empty() ? "none" : join(legal),
      *std::max_element(too_wide.begin(), too_wide.end())));
}

}  // namespace epsweep
