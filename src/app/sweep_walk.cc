#include "app/sweep_walk.h"

#include "base/error.h"
#include "costs/serving_memory.h"

namespace epsweep {
namespace {

SweepPoint at_load(SweepPoint point, std::int64_t tokens) {
  point.concurrency.tokens = tokens;
  return point;
}

// Where between a load that the KV room holds and one that it does not the last one lies that it
// holds: more tokens never need less.
std::int64_t most_in_kv_room(const SweepPoint& point, std::int64_t holds, std::int64_t refused) {
  while (refused - holds > 1) {
    const std::int64_t middle = holds + (refused - holds) / 2;
    (kv_stop(at_load(point, middle)) ? refused : holds) = middle;
  }
  return holds;
}

LoadEnd load_end_of(const PointEnd& end) {
  if (end.met) {
    switch (end.met->kind) {
      case StopKind::kv_memory:
        return LoadEnd::kv_memory;
      case StopKind::device_memory:
        return LoadEnd::device_memory;
      case StopKind::latency_objective:
        return LoadEnd::too_slow;
      case StopKind::ladder_end:
        break;
    }
  }
  const bool ran = end.state == PointState::measured || end.state == PointState::simulated;
  return ran ? LoadEnd::admitted : LoadEnd::no_answer;
}

std::string with_kind(const LadderStop& stop) {
  return to_string(stop.kind) + ": " + stop.reason;
}

}  // namespace

std::optional<Refusal> refusal_of(const SweepPoint& point, const std::string& plan_reason,
                                  const LadderStops& stops) {
  if (!plan_reason.empty()) return Refusal{PointState::skipped, plan_reason, std::nullopt};
  if (const auto below = stops.below(point)) {
    return Refusal{PointState::stopped, below->beyond(), below};
  }
  if (const auto stop = kv_stop(point)) return Refusal{PointState::stopped, with_kind(*stop), stop};
  return std::nullopt;
}

Refusal memory_refusal(const SweepPoint& point, const std::string& missing) {
  const LadderStop stop{
      .kind = StopKind::device_memory, .at_tokens = point.tokens_global(), .reason = missing};
  return {PointState::stopped, with_kind(stop), stop};
}

PointEnd end_of(const SweepPoint& point, const Refusal& refusal) {
  PointEnd end{.state = refusal.state, .met = refusal.stop};
  if (end.met && end.met->at_tokens < point.tokens_global()) end.met.reset();
  return end;
}

PointEnd end_of_timed(PointRecordInput& input) {
  PointEnd end{.state = input.state, .met = {}};
  if (end.state != PointState::measured && end.state != PointState::simulated) return end;
  const auto period_s = input.timings->period_s(objective_percentile(input.point));
  end.met = latency_stop(input.point, period_s.value_or(0) * 1e6);
  if (!end.met) return end;
  if (input.point.attempt > 1) {
    input.ladder_stop = end.met;
  } else {
    input.warnings.push_back(end.met->reason + ": measured again before it ends the series");
  }
  return end;
}

SweepWalk::SweepWalk(const Plan& plan) : plan_(plan) {
  for (const SweepPoint& point : plan.points) ++series_of(point).planned_left;
}

SweepWalk::Series& SweepWalk::series_of(const SweepPoint& point) {
  // Loads listed by rank have no order, so there is nothing between them.
  // What explains other points has the load that it needs.
  const bool explains =
      point.load_from == LoadFrom::bridge || point.load_from == LoadFrom::counterfactual;
  const bool searches =
      point.limits && point.concurrency.mode != ConcurrencyMode::listed && !explains;
  const auto resolution = searches ? std::optional(point.limits->resolution) : std::nullopt;
  return series_
      .try_emplace(series_key(point) + (explains ? " explaining" : ""),
                   Series{.search = LoadSearch(resolution), .planned_left = 0})
      .first->second;
}

SweepPoint SweepWalk::added(std::int64_t tokens, LoadFrom from, int attempt) {
  SweepPoint point = at_load(last_, tokens);
  point.load_from = from;
  point.attempt = attempt;
  point.index = static_cast<int>(plan_.points.size()) + num_added_++;
  return point;
}

std::optional<SweepPoint> SweepWalk::next() {
  if (current_ != nullptr && !is_closed_) {
    if (current_->search.again()) {
      return last_ = added(last_.concurrency.tokens, last_.load_from, last_.attempt + 1);
    }
    if (current_->planned_left == 0) {
      if (const auto tokens = current_->search.next_between()) {
        return last_ = added(*tokens, LoadFrom::bisection, 1);
      }
    }
  }
  if (next_planned_ == plan_.points.size()) return std::nullopt;
  last_ = plan_.points[next_planned_++];
  current_ = &series_of(last_);
  --current_->planned_left;
  return last_;
}

void SweepWalk::end(const SweepPoint& point, const PointEnd& end) {
  EPS_EXPECT(current_ != nullptr && point.index == last_.index, "the end of another point");
  if (is_closed_) return;
  LoadSearch& search = current_->search;
  search.end(point.concurrency.tokens, load_end_of(end));
  if (search.again() || !end.met) return;
  stops_.add(point, *end.met);
  if (end.met->kind == StopKind::kv_memory && search.admitted()) {
    search.know_kv_room(most_in_kv_room(point, *search.admitted(), point.concurrency.tokens));
  }
}

void SweepWalk::close() {
  is_closed_ = true;
}

int SweepWalk::num_points() const {
  const int left = current_ != nullptr && !is_closed_ ? current_->search.most_left() : 0;
  return static_cast<int>(plan_.points.size()) + num_added_ + left;
}

}  // namespace epsweep
