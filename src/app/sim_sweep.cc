#include "app/sim_sweep.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "app/coordinator.h"
#include "app/experiment.h"
#include "app/plan_notes.h"
#include "app/signals.h"
#include "app/sim_breakdown.h"
#include "app/sim_clocks.h"
#include "base/chain_shape.h"
#include "base/host_probe.h"
#include "base/random.h"
#include "costs/memory.h"
#include "costs/serving_memory.h"
#include "costs/uniform_ffn.h"
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

// Why a point's shards were not measured; absent where they were, or need not be.
std::optional<Refusal> refusal_of(const SweepPoint& point, const VirtualPoint& measured) {
  if (measured.can_run()) return std::nullopt;
  if (measured.stop_signal != 0) {
    return Refusal{PointState::stopped, fmt::format("signal {}", measured.stop_signal), {}};
  }
  if (measured.refusal.empty()) return memory_refusal(point, measured.missing_memory);
  return Refusal{PointState::skipped, measured.refusal, {}};
}

// The hardware's memory is the only one that simulated ranks have.
std::string missing_memory(const SweepPoint& point, const PointWorkload& workload) {
  if (!point.hardware || !point.hardware->memory_bytes) return "";
  return memory_shortfall(workload.memory, *point.hardware->memory_bytes).value_or("");
}

}  // namespace

SimulatedPoint simulate_point(const SweepPoint& point, const GroupLayout& layout,
                              const std::vector<Fault>& faults, TraceCache& traces,
                              const PredictedCosts& predicted) {
  PointWorkloadSum workload(point, places_from_topology(point));
  DeclaredTimesSum declared(point, layout, predicted);
  for (int routing = 0; routing < point.num_routings(); ++routing) {
    const int layer = point.layer_of(routing);
    const Placement placement = place_experts(point, layer, rows_to_fit(point, layer, traces));
    const Trace& trace = traces.of(at_step_of(point, routing), layer);
    workload.add_layer(trace, placement);
    declared.add_layer(trace, placement);
    if (routing < point.layers) workload.score_layer(placement, traces);
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
      results_(results),
      progress_(static_cast<int>(plan.points.size())),
      walk_(plan) {}

int SimSweep::run() {
  std::vector<PointState> states;
  while (const std::optional<SweepPoint> point = walk_.next()) {
    PointEnd end;
    if (const int signal = noted_signal(); signal != 0) {
      walk_.close();
      const std::string reason = fmt::format("signal {} ended the sweep before this point", signal);
      end = end_refused(record_input(*point), {PointState::stopped, reason, {}});
    } else {
      progress_.begin_point(point_label(*point));
      end = run_point(*point);
    }
    walk_.end(*point, end);
    if (counts_for_exit(*point, end.state)) states.push_back(end.state);
    progress_.expect(walk_.num_points());
    progress_.end_point(to_string(end.state));
  }
  const int signal = noted_signal();
  return signal != 0 ? 128 + signal : static_cast<int>(exit_code_of(states));
}

PointEnd SimSweep::run_point(const SweepPoint& point) {
  PointRecordInput input = record_input(point);
  std::string why_not = why_not_here(point, settings_.num_ranks);
  const PredictionSource* source = settings_.prediction;
  if (why_not.empty() && source != nullptr && source->calibration) {
    why_not = reason_not_to_predict(point).value_or("");
  }
  if (const auto refusal = walk_.refusal(point, why_not)) {
    return end_refused(std::move(input), *refusal);
  }
  if (point.tokens_global() > 0) return simulate(std::move(input));
  return end_refused(std::move(input), {PointState::empty, "", {}});
}

PointEnd SimSweep::end_refused(PointRecordInput input, const Refusal& refusal) {
  input.state = refusal.state;
  input.reason = refusal.reason;
  input.ladder_stop = refusal.stop;
  record(input);
  return end_of(input.point, refusal);
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
SimulatedPoint SimSweep::simulated(const PointRecordInput& input, const VirtualPoint& measured,
                                   PointSummary& central, Json& prediction) {
  const PredictionSource* source = settings_.prediction;
  const bool calibrated = source != nullptr && source->calibration.has_value();
  const VirtualShards* shards = measured.shards ? &*measured.shards : nullptr;
  const StageCosts costs =
      calibrated ? calibrated_costs(*source->calibration, input.point) : StageCosts{};
  const auto at = [&](Bound bound) {
    return simulate_point(
        input.point, input.layout, settings_.faults, traces_,
        {.costs = calibrated ? &costs : nullptr, .bound = bound, .shards = shards});
  };
  SimulatedPoint simulated = at(Bound::central);
  central = summarize(simulated.times, kDeclaredWeights);
  if (source == nullptr) return simulated;
  PredictedSummaries summaries{.central = &central};
  std::optional<PointSummary> low, high;
  if (calibrated || shards != nullptr) {
    low = summarize(at(Bound::low).times, kDeclaredWeights);
    high = summarize(at(Bound::high).times, kDeclaredWeights);
    summaries.low = &*low;
    summaries.high = &*high;
  }
  prediction = predicted_json(*source, summaries, simulated.distance);
  if (shards != nullptr) put_measured_compute(measured, prediction);
  return simulated;
}

// Nothing where nobody measures.
VirtualPoint SimSweep::measure_compute(PointRecordInput& input) const {
  if (settings_.prediction == nullptr || settings_.prediction->virtual_ranks == nullptr) return {};
  VirtualRanks& ranks = *settings_.prediction->virtual_ranks;
  VirtualPoint measured = ranks.measure(input.point);
  input.load = ranks.load();
  input.load.foreign_load = measured.foreign_load;
  return measured;
}

PointEnd SimSweep::simulate(PointRecordInput input) {
  const SweepPoint& point = input.point;
  const double begin_s = monotonic_s();
  const VirtualPoint measured = measure_compute(input);
  if (const auto refusal = refusal_of(point, measured)) {
    return end_refused(std::move(input), *refusal);
  }
  PointSummary timings;
  SimulatedPoint simulated = this->simulated(input, measured, timings, input.prediction);
  input.harness.measured = monotonic_s() - begin_s;
  input.workload = std::move(simulated.workload);
  input.clock = std::move(simulated.clock);
  input.warnings = routing_warnings(point);
  if (const std::string missing = missing_memory(point, *input.workload); !missing.empty()) {
    const Refusal refusal = memory_refusal(point, missing);
    return end_refused(std::move(input), refusal);
  }
  const bool predicted = settings_.prediction != nullptr;
  input.state = predicted ? PointState::predicted : PointState::simulated;
  input.check = CheckResult{
      .verdict = CheckVerdict::not_run,
      .worst_error = std::nullopt,
      .tolerance = 0,
      .tokens_checked = 0,
      .when = to_string(input.state) + (measured.shards ? ": results need the ranks that are absent"
                                                        : ": no values were computed")};
  input.timings = std::move(timings);
  const bool calibrated = predicted && (settings_.prediction->calibration || measured.shards);
  const Placement placement = place_experts(point, 0, rows_to_fit(point, 0, traces_));
  input.breakdown = break_down_simulated(
      point, input.layout, calibrated ? CostsFrom::calibration : CostsFrom::declaration,
      *input.workload, simulated.times, *input.timings, uniform_ffn(point, placement));
  const PointEnd end = end_of_timed(input);
  input.timings_file = results_.write_timings(point.index, simulated.times.stages);
  input.chains_file = results_.write_timings(point.index, simulated.times.chains);
  record(input);
  return end;
}

void SimSweep::record(const PointRecordInput& input) {
  results_.append(make_point_record(input));
}

}  // namespace epsweep
