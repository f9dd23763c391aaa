#include "app/coordinator.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "app/experiment.h"
#include "app/launch_facts.h"
#include "app/plan_notes.h"
#include "costs/point_workload.h"

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

PointWorkload workload_of(const RankWork& work) {
  PointWorkloadSum sum(work.point);
  for (std::size_t layer = 0; layer < work.traces.size(); ++layer) {
    sum.add_layer(work.traces[layer], work.placements[layer]);
  }
  return sum.finish();
}

}  // namespace

ExitCode exit_code_of(const std::vector<PointState>& states) {
  const auto any = [&states](PointState state) {
    return std::ranges::find(states, state) != states.end();
  };
  if (any(PointState::failed) || any(PointState::unverified)) return ExitCode::verification;
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
    PointEnd end{.state = PointState::stopped, .stop_signal = stop_signal};
    if (stop_signal == 0) {
      end = run_point_on_all(point);
    } else if (world_.rank() == 0) {
      PointRecordInput input = record_input(point);
      input.state = PointState::stopped;
      input.reason = fmt::format("signal {} ended the sweep before this point", stop_signal);
      record(input);
    }
    // Rank 0 knows how the point ended; everybody goes on from there.
    std::array<std::int64_t, 2> shared = {static_cast<std::int64_t>(end.state), end.stop_signal};
    world_.broadcast(std::span(shared), 0);
    states.push_back(static_cast<PointState>(shared[0]));
    stop_signal = static_cast<int>(shared[1]);
  }
  if (stop_signal != 0) return 128 + stop_signal;
  return static_cast<int>(exit_code_of(states));
}

Coordinator::PointEnd Coordinator::run_point_on_all(const SweepPoint& point) {
  if (progress_) progress_->begin_point(point_label(point));
  std::string reason = reason_not_to_plan(point).value_or("");
  RankPoint rank_point;
  if (reason.empty()) {
    rank_point = engine_.begin(point);
    reason = engine_.reason_not_to_run(rank_point);
  }
  if (!reason.empty()) {
    if (world_.rank() != 0) return {.state = PointState::skipped, .stop_signal = 0};
    PointRecordInput input = record_input(point);
    input.state = PointState::skipped;
    input.reason = reason;
    if (rank_point.work) input.workload = workload_of(*rank_point.work);
    return record(input);
  }
  engine_.run(rank_point);
  const GatheredPoint gathered = gather_point(world_, hosts_, rank_point);
  if (world_.rank() != 0) return {};
  return record_measured(point, rank_point, gathered);
}

PointRecordInput Coordinator::record_input(const SweepPoint& point) const {
  PointRecordInput input;
  input.point = point;
  input.world_size = world_.size();
  input.layout = group_layout(world_.size(), point.ep_size, point.mapping, point.groups);
  const CoreShare share = busiest_host(hosts_, active_ranks(input.layout));
  input.load = {.ranks = share.ranks, .cores = share.cores, .foreign_load = std::nullopt};
  return input;
}

Coordinator::PointEnd Coordinator::record_measured(const SweepPoint& point,
                                                   const RankPoint& rank_point,
                                                   const GatheredPoint& gathered) {
  PointRecordInput input = record_input(point);
  const Verdict verdict = verdict_of(point, gathered);
  input.state = verdict.state;
  input.reason = verdict.reason;
  input.workload = workload_of(*rank_point.work);
  input.warnings = routing_warnings(point);
  input.gemms = gathered.gemms;
  input.check = gathered.check;
  input.load.foreign_load = gathered.foreign_load;
  input.harness = gathered.harness;
  if (verdict.state == PointState::measured) {
    input.timings = summarize(*gathered.times);
    input.timings_file = results_->write_timings(point.index, *gathered.times);
  }
  PointEnd end = record(input);
  end.stop_signal = gathered.stop_signal;
  return end;
}

Coordinator::PointEnd Coordinator::record(const PointRecordInput& input) {
  records_.push_back(make_point_record(input));
  results_->append(records_.back());
  progress_->end_point(to_string(input.state));
  return {.state = input.state, .stop_signal = 0};
}

}  // namespace epsweep
