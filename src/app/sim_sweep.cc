#include "app/sim_sweep.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "app/coordinator.h"
#include "app/experiment.h"
#include "app/plan_notes.h"
#include "app/signals.h"
#include "app/sim_clocks.h"
#include "base/chain_shape.h"
#include "base/host_probe.h"
#include "base/random.h"
#include "costs/memory.h"
#include "costs/serving_memory.h"
#include "device/transport.h"
#include "pipeline/stop_rule.h"
#include "report/calibration.h"
#include "sim/simulated_passes.h"
#include "workload/placement_traces.h"

namespace epsweep {
namespace {

// What a real chain finds of its weights in caches (costs/chain_weights.h); here they cost what
// was declared.
constexpr const char* kDeclaredWeights = "declared";

// Repeats of a point and points of a sweep have noise of their own.
std::uint64_t noise_key(const SweepPoint& point) {
  Fingerprint key;
  for (const char c : point_id(point)) key.add(static_cast<unsigned char>(c));
  return key.value();
}

std::vector<std::vector<Fault>> faults_by_row(const std::vector<Fault>& faults, int ep_size,
                                              const std::vector<int>& world_ranks) {
  std::vector<std::vector<Fault>> by_row;
  for (const int rank : world_ranks) {
    std::vector<Fault>& own = by_row.emplace_back();
    std::ranges::copy_if(faults, std::back_inserter(own),
                         [&](const Fault& fault) { return fault.applies(rank, ep_size); });
  }
  return by_row;
}

// Sum of a rank's own stages, and of its layers that count: what the stop rule of a real pass is
// asked with. Maximum over ranks, by iteration.
std::vector<double> slowest_s(const TimingTable& table) {
  std::vector<double> slowest(static_cast<std::size_t>(table.num_iterations()), 0);
  for (int rank = 0; rank < table.num_ranks(); ++rank) {
    for (int i = 0; i < table.num_iterations(); ++i) {
      double sum_s = 0;
      for (int l = 0; l < table.num_layers(); ++l) {
        for (int s = 0; s < kNumStages; ++s) {
          sum_s += table.wall_s(rank, i, l, static_cast<Stage>(s));
        }
      }
      double& most = slowest[static_cast<std::size_t>(i)];
      most = std::max(most, sum_s);
    }
  }
  return slowest;
}

std::vector<double> slowest_s(const ChainTable& table) {
  const int last = table.chain_layers() - 1, fill = fill_layers_of(table.chain_layers());
  std::vector<double> slowest(static_cast<std::size_t>(table.num_chains()), 0);
  for (int rank = 0; rank < table.num_ranks(); ++rank) {
    for (int chain = 0; chain < table.num_chains(); ++chain) {
      double& most = slowest[static_cast<std::size_t>(chain)];
      most = std::max(most, table.end_s(rank, chain, last) - table.begin_s(rank, chain, fill));
    }
  }
  return slowest;
}

template <typename Table>
struct Pass {
  Table table;
  PassFactsOfRanks facts;
};

// As run_iterations() of a real pass decides; `simulate(n)` begins with the same iterations for
// every n. Time is virtual too.
template <typename Simulate>
auto run_pass(const SweepPoint& point, const Simulate& simulate) -> Pass<decltype(simulate(1))> {
  const IterationPlan plan{.fewest = point.iterations, .target = point.iteration_target};
  for (int done = next_batch(plan, 0);; done += next_batch(plan, done)) {
    auto table = simulate(done);
    const std::vector<double> samples = slowest_s(table);
    double elapsed_s = 0;
    for (const double sample : samples) elapsed_s += sample;
    const std::optional<StopReason> stop = stop_reason(plan, samples, elapsed_s);
    if (!stop) continue;
    PassFactsOfRanks facts;
    facts.stop = kStopReasonNames[static_cast<std::size_t>(*stop)];
    facts.precision = relative_precision(samples);
    facts.disturbed.assign(samples.size(), 0);
    return {std::move(table), std::move(facts)};
  }
}

std::string why_not_here(const SweepPoint& point, int num_ranks) {
  if (const auto reason = reason_not_to_plan(point)) return *reason;
  if (point.ep_size > num_ranks) {
    return fmt::format("ep_size {} needs more than {} ranks", point.ep_size, num_ranks);
  }
  const TransportCatalog& transports = TransportCatalog::instance();
  if (transports.contains(point.transport) &&
      transports.at(point.transport).capacity == Capacity::fixed) {
    return fmt::format("transport {} pads its messages, which is not simulated", point.transport);
  }
  return "";
}

// The hardware's memory is the only one that simulated ranks have.
std::optional<LadderStop> memory_stop(const SweepPoint& point, const PointWorkload& workload) {
  if (!point.hardware || !point.hardware->memory_bytes) return std::nullopt;
  const auto missing = memory_shortfall(workload.memory, *point.hardware->memory_bytes);
  if (!missing) return std::nullopt;
  return LadderStop{
      .kind = StopKind::device_memory, .at_tokens = point.tokens_global(), .reason = *missing};
}

}  // namespace

SimulatedPoint simulate_point(const SweepPoint& point, const GroupLayout& layout,
                              const std::vector<Fault>& faults, TraceCache& traces,
                              const PredictedCosts& predicted) {
  PointWorkloadSum workload(point, places_from_topology(point));
  DeclaredTimesSum declared(point, layout, predicted);
  for (int layer = 0; layer < point.layers; ++layer) {
    const Placement placement = place_experts(point, layer, rows_to_fit(point, layer, traces));
    const Trace& trace = traces.of(point, layer);
    workload.add_layer(trace, placement);
    declared.add_layer(trace, placement);
    workload.score_layer(placement, traces);
  }
  const DeclaredTimes times = declared.finish();
  const std::vector<int>& ranks = times.world_rank_of_row;
  const SimConditions conditions{
      .noise = point.sim != nullptr ? point.sim->noise : SimCosts::Noise{},
      .point_key = noise_key(point),
      .faults_of_row = faults_by_row(faults, point.ep_size, ranks),
      .clock_of_row = sim_clocks(faults, ranks)};
  auto aligned = run_pass(point, [&](int n) { return simulate_aligned(times, conditions, n); });
  auto chained = run_pass(point, [&](int n) { return simulate_chained(times, conditions, n); });
  SimulatedPoint simulated{.workload = workload.finish(),
                           .times = {.stages = std::move(aligned.table),
                                     .chains = std::move(chained.table),
                                     .rows = {.group_of_row = times.group_of_row},
                                     .aligned = std::move(aligned.facts),
                                     .chained = std::move(chained.facts)},
                           .clock = {},
                           .distance = declared.distance()};
  const auto clocks_of = [&](std::span<const double> marks) {
    return align_sim_clocks(point, ranks, conditions.clock_of_row, std::ranges::max(marks) + 1);
  };
  const std::vector<AlignedClock> clocks = clocks_of(simulated.times.stages.values());
  simulated.clock = clock_report(clocks);
  if (conditions.clock_of_row.empty()) return simulated;
  simulated.times.rows.order_bound_s = order_bound_s(clocks);
  simulated.times.stages = on_common_axis(simulated.times.stages, clocks);
  simulated.times.chains =
      on_common_axis(simulated.times.chains, clocks_of(simulated.times.chains.values()));
  return simulated;
}

SimSweep::SimSweep(const SimSettings& settings, const Plan& plan, RunDirectory& results)
    : settings_(settings),
      plan_(plan),
      results_(results),
      progress_(static_cast<int>(plan.points.size())) {}

int SimSweep::run() {
  std::vector<PointState> states;
  for (const SweepPoint& point : plan_.points) {
    if (const int signal = noted_signal(); signal != 0) {
      states.push_back(
          end_early(record_input(point), PointState::stopped,
                    fmt::format("signal {} ended the sweep before this point", signal)));
    } else {
      progress_.begin_point(point_label(point));
      states.push_back(run_point(point));
    }
  }
  const int signal = noted_signal();
  return signal != 0 ? 128 + signal : static_cast<int>(exit_code_of(states));
}

PointState SimSweep::run_point(const SweepPoint& point) {
  PointRecordInput input = record_input(point);
  if (const std::string reason = why_not_here(point, settings_.num_ranks); !reason.empty()) {
    return end_early(std::move(input), PointState::skipped, reason);
  }
  if (const auto below = ladder_stops_.below(point)) {
    input.ladder_stop = below;
    return end_early(std::move(input), PointState::stopped, below->beyond());
  }
  input.ladder_stop = kv_stop(point);
  if (!input.ladder_stop && point.tokens_global() > 0) return record_simulated(std::move(input));
  if (!input.ladder_stop) return end_early(std::move(input), PointState::empty, "");
  ladder_stops_.add(point, *input.ladder_stop);
  const std::string reason = to_string(input.ladder_stop->kind) + ": " + input.ladder_stop->reason;
  return end_early(std::move(input), PointState::stopped, reason);
}

PointState SimSweep::end_early(PointRecordInput input, PointState state,
                               const std::string& reason) {
  input.state = state;
  input.reason = reason;
  return record(input);
}

PointRecordInput SimSweep::record_input(const SweepPoint& point) const {
  PointRecordInput input;
  input.point = point;
  input.world_size = settings_.num_ranks;
  if (point.ep_size <= settings_.num_ranks) {
    input.layout = group_layout(settings_.num_ranks, point.ep_size, point.mapping, point.groups);
  }
  return input;
}

// Of a prediction also at the ends of all intervals.
SimulatedPoint SimSweep::simulated(const PointRecordInput& input, PointSummary& central,
                                   Json& prediction) {
  const PredictionSource* source = settings_.prediction;
  const bool calibrated = source != nullptr && source->calibration.has_value();
  const StageCosts costs =
      calibrated ? calibrated_costs(*source->calibration, input.point) : StageCosts{};
  const auto at = [&](Bound bound) {
    return simulate_point(input.point, input.layout, settings_.faults, traces_,
                          {.costs = calibrated ? &costs : nullptr, .bound = bound});
  };
  SimulatedPoint simulated = at(Bound::central);
  central = summarize(simulated.times, kDeclaredWeights);
  if (source == nullptr) return simulated;
  PredictedSummaries summaries{.central = &central};
  std::optional<PointSummary> low, high;
  if (calibrated) {
    low = summarize(at(Bound::low).times, kDeclaredWeights);
    high = summarize(at(Bound::high).times, kDeclaredWeights);
    summaries.low = &*low;
    summaries.high = &*high;
  }
  prediction = predicted_json(*source, summaries, simulated.distance);
  return simulated;
}

PointState SimSweep::record_simulated(PointRecordInput input) {
  const SweepPoint& point = input.point;
  const double begin_s = monotonic_s();
  PointSummary timings;
  SimulatedPoint simulated = this->simulated(input, timings, input.prediction);
  input.harness.measured = monotonic_s() - begin_s;
  input.workload = std::move(simulated.workload);
  input.clock = std::move(simulated.clock);
  input.warnings = routing_warnings(point);
  if (const auto stop = memory_stop(point, *input.workload)) {
    ladder_stops_.add(point, *stop);
    input.ladder_stop = stop;
    return end_early(std::move(input), PointState::stopped,
                     to_string(stop->kind) + ": " + stop->reason);
  }
  const bool predicted = settings_.prediction != nullptr;
  input.state = predicted ? PointState::predicted : PointState::simulated;
  input.check = CheckResult{.verdict = CheckVerdict::not_run,
                            .worst_error = std::nullopt,
                            .tolerance = 0,
                            .tokens_checked = 0,
                            .when = to_string(input.state) + ": no values were computed"};
  input.timings = std::move(timings);
  input.ladder_stop = latency_stop(point, input.timings->period_p50_s().value_or(0) * 1e6);
  if (input.ladder_stop) ladder_stops_.add(point, *input.ladder_stop);
  input.timings_file = results_.write_timings(point.index, simulated.times.stages);
  input.chains_file = results_.write_timings(point.index, simulated.times.chains);
  return record(input);
}

PointState SimSweep::record(const PointRecordInput& input) {
  const Json record = make_point_record(input);
  results_.append(record);
  progress_.end_point(to_string(input.state));
  return input.state;
}

}  // namespace epsweep
