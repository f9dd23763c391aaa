#include "app/coordinator.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "app/experiment.h"
#include "app/launch_facts.h"
#include "app/plan_notes.h"
#include "costs/chain_weights.h"
#include "costs/point_workload.h"
#include "costs/serving_memory.h"
#include "costs/uniform_ffn.h"
#include "report/breakdown_json.h"
#include "report/rate_claims.h"
#include "workload/placement_traces.h"

namespace epsweep {
namespace {

// What the gathered checks say about a point that ran.
struct Verdict {
  PointState state = PointState::measured;
  std::string reason;
};

Verdict verdict_of(const SweepPoint& point, const GatheredPoint& gathered) {
  if (gathered.stop_signal != 0) {
    return {PointState::stopped, fmt::format("signal {}", gathered.stop_signal)};
  }
  if (gathered.check.verdict == CheckVerdict::failed) {
    return {PointState::failed, "check failed: " + gathered.check_problem};
  }
  if (gathered.check.verdict == CheckVerdict::unfinished) {
    return {PointState::unverified, "check could not finish: " + gathered.check_problem};
  }
  if (point.tokens_global() == 0) return {PointState::empty, ""};
  return {PointState::measured, ""};
}

}  // namespace

bool counts_for_exit(const SweepPoint& point, PointState state) {
  const bool asked = point.load_from == LoadFrom::ladder || point.load_from == LoadFrom::bisection;
  return asked || (state != PointState::skipped && state != PointState::stopped);
}

ExitCode exit_code_of(const std::vector<PointState>& states) {
  const auto any = [&states](PointState state) {
    return std::ranges::find(states, state) != states.end();
  };
  if (any(PointState::failed) || any(PointState::unverified) || any(PointState::impossible)) {
    return ExitCode::verification;
  }
  if (any(PointState::skipped) || any(PointState::stopped) || any(PointState::empty)) {
    return ExitCode::incomplete;
  }
  return ExitCode::ok;
}

Coordinator::Coordinator(const Comm& world, const HostMap& hosts, const Plan& plan,
                         RankEngine& engine, RunDirectory* results)
    : world_(world), hosts_(hosts), engine_(engine), results_(results), walk_(plan) {
  if (world_.rank() == 0) progress_.emplace(walk_.num_points());
}

int Coordinator::run() {
  std::vector<PointState> states;
  int stop_signal = 0;
  while (const std::optional<SweepPoint> point = walk_.next()) {
    SharedEnd shared{.end = {.state = PointState::stopped, .met = {}}, .stop_signal = stop_signal};
    if (stop_signal == 0) {
      shared = run_point_on_all(*point);
    } else {
      const std::string reason =
          fmt::format("signal {} ended the sweep before this point", stop_signal);
      shared.end = end_refused(*point, {PointState::stopped, reason, {}}, nullptr).end;
    }
    share_end(*point, shared);
    walk_.end(*point, shared.end);
    if (counts_for_exit(*point, shared.end.state)) states.push_back(shared.end.state);
    stop_signal = shared.stop_signal;
    if (stop_signal != 0) walk_.close();
    if (!progress_) continue;
    progress_->expect(walk_.num_points());
    progress_->end_point(to_string(shared.end.state));
  }
  if (stop_signal != 0) return 128 + stop_signal;
  return static_cast<int>(exit_code_of(states));
}

// Rank 0 knows how the point ended; everybody goes on from there.
void Coordinator::share_end(const SweepPoint& point, SharedEnd& shared) {
  constexpr std::int64_t kNothingMet = -1;
  PointEnd& end = shared.end;
  std::array<std::int64_t, 3> values = {
      static_cast<std::int64_t>(end.state), shared.stop_signal,
      end.met ? static_cast<std::int64_t>(end.met->kind) : kNothingMet};
  world_.broadcast(std::span(values), 0);
  end.state = static_cast<PointState>(values[0]);
  shared.stop_signal = static_cast<int>(values[1]);
  if (values[2] == kNothingMet) {
    end.met.reset();
  } else if (!end.met) {
    end.met = LadderStop{
        .kind = static_cast<StopKind>(values[2]), .at_tokens = point.tokens_global(), .reason = ""};
  }
}

// Not run, or not to its end; `rank_point` where it got as far as having rows.
Coordinator::SharedEnd Coordinator::end_refused(const SweepPoint& point, const Refusal& refusal,
                                                const RankPoint* rank_point) {
  const SharedEnd shared{.end = end_of(point, refusal), .stop_signal = 0};
  if (world_.rank() != 0) return shared;
  PointRecordInput input = record_input(point);
  input.state = refusal.state;
  input.reason = refusal.reason;
  input.ladder_stop = refusal.stop;
  if (rank_point != nullptr && rank_point->work) input.workload = workload_of(*rank_point->work);
  record(input);
  return shared;
}

Coordinator::SharedEnd Coordinator::run_point_on_all(const SweepPoint& point) {
  if (progress_) progress_->begin_point(point_label(point));
  // Hosts differ in memory, so the first rank that refuses decides for all.
  const std::string plan_reason = world_.first_text(reason_not_to_plan(point).value_or(""));
  if (const auto refusal = walk_.refusal(point, plan_reason)) {
    return end_refused(point, *refusal, nullptr);
  }
  RankPoint rank_point = engine_.begin(point);
  if (const std::string reason = engine_.reason_not_to_run(rank_point); !reason.empty()) {
    return end_refused(point, {PointState::skipped, reason, {}}, &rank_point);
  }
  if (const std::string missing = engine_.memory_shortfall_of(rank_point); !missing.empty()) {
    return end_refused(point, memory_refusal(point, missing), &rank_point);
  }
  return measure_on_all(point, rank_point);
}

Coordinator::SharedEnd Coordinator::measure_on_all(const SweepPoint& point, RankPoint& rank_point) {
  engine_.run(point, rank_point);
  const GatheredPoint gathered = gather_point(world_, hosts_, rank_point);
  PointRecordInput input;
  if (world_.rank() == 0) input = measured_input(point, rank_point, gathered);
  doubt_ceilings(rank_point, input);
  if (world_.rank() != 0) return {};
  return record_measured(input, gathered);
}

KnownPlaces Coordinator::places_of(const SweepPoint& point) const {
  if (auto declared = places_from_topology(point)) return std::move(*declared);
  Topology measured;
  for (const RankPlace& place : hosts_.ranks) measured.host_of_rank.push_back(place.host);
  const GroupLayout layout =
      group_layout(world_.size(), point.ep_size, point.mapping, point.groups);
  return {group_places(measured, members(layout, 0)), PlacesFrom::measured_hosts};
}

PointWorkload Coordinator::workload_of(const RankWork& work) {
  PointWorkloadSum sum(work.point, places_of(work.point));
  for (std::size_t routing = 0; routing < work.traces.size(); ++routing) {
    const Placement& placement = work.placements[routing];
    sum.add_layer(work.traces[routing], placement);
    if (routing < static_cast<std::size_t>(work.point.layers)) sum.score_layer(placement, traces_);
  }
  return sum.finish(work.capacity_rows);
}

PointRecordInput Coordinator::record_input(const SweepPoint& point) const {
  PointRecordInput input;
  input.point = point;
  input.world_size = world_.size();
  input.layout = group_layout(world_.size(), point.ep_size, point.mapping, point.groups);
  const std::vector<int> working = active_ranks(input.layout);
  const CoreShare share = busiest_host(hosts_, working);
  input.load = {.ranks = share.ranks,
                .cores = share.cores,
                .ranks_per_device = ranks_on_busiest_device(hosts_, engine_.device_ids(), working),
                .foreign_load = std::nullopt};
  return input;
}

std::string Coordinator::weights_in_chains(const SweepPoint& point,
                                           const PointWorkload& workload) const {
  std::int64_t least = INT64_MAX;
  for (const FfnWork& rank : workload.ffn_of_rank) least = std::min(least, rank.weight_bytes);
  return chain_weights(point, least, engine_.describe().last_level_cache_bytes);
}

std::vector<int> Coordinator::device_of_rank(const std::vector<int>& world_ranks) const {
  std::map<std::pair<int, std::string>, int> devices;
  std::vector<int> device_of_rank;
  for (const int rank : world_ranks) {
    const auto at = static_cast<std::size_t>(rank);
    const std::pair key(hosts_.ranks[at].host, engine_.device_ids()[at]);
    device_of_rank.push_back(
        devices.try_emplace(key, static_cast<int>(devices.size())).first->second);
  }
  return device_of_rank;
}

PointRecordInput Coordinator::measured_input(const SweepPoint& point, const RankPoint& rank_point,
                                             const GatheredPoint& gathered) {
  PointRecordInput input = record_input(point);
  const Verdict verdict = verdict_of(point, gathered);
  input.state = verdict.state;
  input.reason = verdict.reason;
  input.workload = workload_of(*rank_point.work);
  input.warnings = routing_warnings(point);
  input.gemms = gathered.gemms;
  // A check of no tokens says nothing.
  if (verdict.state != PointState::empty) input.check = gathered.check;
  input.load.foreign_load = gathered.foreign_load;
  input.device_condition_before = gathered.device_condition_before;
  input.device_condition = gathered.device_condition;
  input.counters = gathered.counters;
  input.harness = gathered.harness;
  input.clock = gathered.clock;
  const std::vector<int> working = active_ranks(input.layout);
  input.ceilings = engine_.ceilings().of(point, working, device_of_rank(working));
  if (verdict.state == PointState::measured) {
    input.timings = summarize(*gathered.times, weights_in_chains(point, *input.workload));
  }
  return input;
}

std::optional<Breakdown> Coordinator::breakdown_of(const GatheredTimes& times,
                                                   const PointRecordInput& input) {
  const SweepPoint& point = input.point;
  const Placement placement = place_experts(point, 0, rows_to_fit(point, 0, traces_));
  return break_down(
      times.stages, times.rows, ep_ranks_of_rows(input.layout), *input.timings,
      breakdown_work(point, *input.workload, input.ceilings, uniform_ffn(point, placement)));
}

void Coordinator::doubt_ceilings(const RankPoint& rank_point, PointRecordInput& input) {
  const auto is_doubtful = [](const RateClaim& claim) {
    return claim.source == LimitSource::measured && claim.impossible();
  };
  const bool doubtful = world_.rank() == 0 && input.state == PointState::measured &&
                        std::ranges::any_of(rate_claims(input), is_doubtful);
  if (world_.all_max(doubtful ? 1 : 0) == 0) return;
  // Every rank knows the layout and the dtype by the work it had; idle ones need neither.
  engine_.measure_rates_again(rank_point);
  if (world_.rank() != 0) return;
  const std::vector<int> working = active_ranks(input.layout);
  input.ceilings = engine_.ceilings().of(input.point, working, device_of_rank(working));
}

Coordinator::SharedEnd Coordinator::record_measured(PointRecordInput& input,
                                                    const GatheredPoint& gathered) {
  if (input.state == PointState::measured) {
    input.timings_file = results_->write_timings(input.point.index, gathered.times->stages);
    input.chains_file = results_->write_timings(input.point.index, gathered.times->chains);
    input.breakdown = breakdown_of(*gathered.times, input);
    if (const auto claim = worst_impossible(rate_claims(input))) {
      input.state = PointState::impossible;
      input.reason = impossible_text(*claim);
    }
  }
  const PointEnd end = end_of_timed(input);
  record(input);
  return {.end = end, .stop_signal = gathered.stop_signal};
}

void Coordinator::record(const PointRecordInput& input) {
  records_.push_back(make_point_record(input));
  results_->append(records_.back());
}

}  // namespace epsweep
