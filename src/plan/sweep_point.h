// One point of a sweep: a value that holds everything that can change a number.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/sweep_spec.h"

namespace epsweep {

struct SweepPoint {
  int index = 0;  // position in the plan
  ModelShape model;
  int ep_size = 1;
  Concurrency concurrency;
  Routing routing;
  std::string placement;
  int redundant_slots = 0;                            // beyond one for each expert
  std::shared_ptr<const PlacementMap> placement_map;  // of placement `map`
  // Traces other than the own one that the placement is fitted to, and scored on.
  std::optional<TraceChoice> fit_on, judge_on;
  ExchangeUnit exchange_unit = ExchangeUnit::assignment;
  std::string transport;
  std::optional<double> capacity_factor;
  Launch launch = Launch::direct;
  std::string grouped_gemm;
  DType dtype = DType::bf16;
  Mapping mapping = Mapping::packed;
  Topology topology;
  Groups groups = Groups::fill;
  WeightCache weight_cache = WeightCache::flush;
  bool allow_empty_ranks = false;
  int layers = 1;
  int vary_routing = 1;  // see num_routings()
  int warmup = 0;
  int iterations = 1;
  std::optional<IterationTarget> iteration_target;
  int repeat = 0;
  LoadFrom load_from = LoadFrom::ladder;
  int attempt = 1;  // 2 of a load whose first measurement was above the latency objective
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  std::optional<HardwareShape> hardware;
  std::optional<Serving> serving;
  std::optional<double> latency_objective_us;
  std::optional<Limits> limits;
  std::shared_ptr<const SimCosts> sim;  // null: SimCosts{}; of simulated launches only

  // C of one EP group.
  std::int64_t tokens_global() const;

  // Iterations go through so many steps of the request stream, each with tokens and routing of its
  // own, one after the other and then again from the first. Routing r is the one of layer
  // r % layers at step + r / layers.
  int num_routings() const { return layers * vary_routing; }
  int layer_of(int nth_routing) const { return nth_routing % layers; }
};

// The point with the step that the routing is of.
SweepPoint at_step_of(SweepPoint point, int routing);

// Tokens [begin, end) of the group's 0..C-1 that live on one EP rank.
struct TokenRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

// C split over EP ranks: uneven by at most one, larger shares first, unless listed by hand.
std::vector<TokenRange> token_ranges(const SweepPoint& point);

// Sizes of `parts` near-equal shares of `total`: uneven by at most one, larger shares first.
std::vector<std::int64_t> near_equal_split(std::int64_t total, int parts);

// 16 hex digits over every field but `index` and `load_from`.
std::string point_id(const SweepPoint& point);

// "eplb", "eplb+32", "map(my_map.yaml 1234abcd)".
std::string placement_label(const SweepPoint& point);

// "EP8 fixed_global 256 zipf(zipf_alpha=1.2)": for messages and progress lines.
std::string point_label(const SweepPoint& point);

// Why the point cannot run whatever the machine and the placement; absent if it can.
std::optional<std::string> infeasible_reason(const SweepPoint& point);

// Every field but `load_from`; the model's and the hardware's only in the second.
Json point_axes_json(const SweepPoint& point);
Json sweep_point_json(const SweepPoint& point);

}  // namespace epsweep
