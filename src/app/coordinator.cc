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
    : world_(world), hosts_(hosts), plan_(plan), engine_(engine), results_(results) {
  if (world_.rank() == 0) progress_.emplace(static_cast<int>(plan.points.size()));
}

int Coordinator::run() {
  std::vector<PointState> states;
  int stop_signal = 0;
  for (const SweepPoint& point : plan_.points) {
    PointEnd end{.state = PointState::stopped, .stop_signal = stop_signal, .ladder_stop = {}};
    if (stop_signal == 0) {
      end = run_point_on_all(point);
    } else if (world_.rank() == 0) {
      PointRecordInput input = record_input(point);
      input.state = PointState::stopped;
      input.reason = fmt::format("signal {} ended the sweep before this point", stop_signal);
      record(input);
    }
    share_end(point, end);
    states.push_back(end.state);
    stop_signal = end.stop_signal;
  }
  if (stop_signal != 0) return 128 + stop_signal;
  return static_cast<int>(exit_code_of(states));
}

// Rank 0 knows how the point ended; everybody goes on from there.
void Coordinator::share_end(const SweepPoint& point, PointEnd& end) {
  constexpr std::int64_t kNoStop = -1;
  std::array<std::int64_t, 3> shared = {
      static_cast<std::int64_t>(end.state), end.stop_signal,
      end.ladder_stop ? static_cast<std::int64_t>(end.ladder_stop->kind) : kNoStop};
  world_.broadcast(std::span(shared), 0);
  end.state = static_cast<PointState>(shared[0]);
  end.stop_signal = static_cast<int>(shared[1]);
  if (shared[2] == kNoStop) return;
  ladder_stops_.add(point, {.kind = static_cast<StopKind>(shared[2]),
                            .at_tokens = point.tokens_global(),
                            .reason = end.ladder_stop ? end.ladder_stop->reason : ""});
}

// A load at or beyond a limit; `rank_point` where it got as far as having rows.
Coordinator::PointEnd Coordinator::end_stopped(const SweepPoint& point, const LadderStop& stop,
                                               const std::string& reason,
                                               const RankPoint* rank_point) {
  if (world_.rank() != 0)
    return {.state = PointState::stopped, .stop_signal = 0, .ladder_stop = {}};
  PointRecordInput input = record_input(point);
  input.state = PointState::stopped;
  input.reason = reason;
  input.ladder_stop = stop;
  if (rank_point != nullptr && rank_point->work) input.workload = workload_of(*rank_point->work);
  PointEnd end = record(input);
  end.ladder_stop = stop;
  return end;
}

Coordinator::PointEnd Coordinator::run_point_on_all(const SweepPoint& point) {
  if (progress_) progress_->begin_point(point_label(point));
  // Hosts differ in memory, so the first rank that refuses decides for all.
  std::string reason = world_.first_text(reason_not_to_plan(point).value_or(""));
  RankPoint rank_point;
  if (reason.empty()) {
    if (const auto below = ladder_stops_.below(point)) {
      PointEnd end = end_stopped(point, *below, below->beyond(), nullptr);
      end.ladder_stop.reset();
      return end;
    }
    if (const auto stop = kv_stop(point)) {
      return end_stopped(point, *stop, to_string(stop->kind) + ": " + stop->reason, nullptr);
    }
    rank_point = engine_.begin(point);
    reason = engine_.reason_not_to_run(rank_point);
  }
  if (!reason.empty()) {
    if (world_.rank() != 0)
      return {.state = PointState::skipped, .stop_signal = 0, .ladder_stop = {}};
    PointRecordInput input = record_input(point);
    input.state = PointState::skipped;
    input.reason = reason;
    if (rank_point.work) input.workload = workload_of(*rank_point.work);
    return record(input);
  }
  if (const std::string missing = engine_.memory_shortfall_of(rank_point); !missing.empty()) {
    const LadderStop stop{
        .kind = StopKind::device_memory, .at_tokens = point.tokens_global(), .reason = missing};
    return end_stopped(point, stop, to_string(stop.kind) + ": " + missing, &rank_point);
  }
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

Coordinator::PointEnd Coordinator::record_measured(PointRecordInput& input,
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
  if (input.state == PointState::measured) {
    input.ladder_stop = latency_stop(input.point, input.timings->period_p50_s().value_or(0) * 1e6);
  }
  PointEnd end = record(input);
  end.stop_signal = gathered.stop_signal;
  end.ladder_stop = input.ladder_stop;
  return end;
}

Coordinator::PointEnd Coordinator::record(const PointRecordInput& input) {
  records_.push_back(make_point_record(input));
  results_->append(records_.back());
  progress_->end_point(to_string(input.state));
  return {.state = input.state, .stop_signal = 0, .ladder_stop = std::nullopt};
}

}  // namespace epsweep
