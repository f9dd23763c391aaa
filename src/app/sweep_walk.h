// The points of a plan in the order they are dealt with, whatever engine runs them: the planned
// ones, loads that are measured again, and loads that the search for a limit adds. Pure: every rank
// keeps one, feeds it with the same ends, and goes on to the same point.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "plan/ladder.h"
#include "plan/load_search.h"
#include "plan/plan.h"
#include "report/point_record.h"

namespace epsweep {

// How a point ended that was not run.
struct Refusal {
  PointState state = PointState::skipped;
  std::string reason;
  std::optional<LadderStop> stop;  // of its series: met at this load, or at a lower one
};

// The one order in which a point is refused before it is begun: what its plan says
// (`plan_reason`, agreed by all ranks; empty for nothing), a limit that a lower load of its series
// met, the KV room. What the device has no memory for shows only once the point is begun.
std::optional<Refusal> refusal_of(const SweepPoint& point, const std::string& plan_reason,
                                  const LadderStops& stops);
// Of a point that was begun and found to lack memory.
Refusal memory_refusal(const SweepPoint& point, const std::string& missing);

struct PointEnd {
  PointState state = PointState::failed;
  // The limit that the load itself met, by measurement or without one; of the latency objective at
  // every attempt.
  std::optional<LadderStop> met;
};
// What a lower load met is not met again.
PointEnd end_of(const SweepPoint& point, const Refusal& refusal);

// Of a point that ran, from its state and its times. Its record says of the latency objective what
// follows from it: the second attempt above it is a stop, the first one a warning.
PointEnd end_of_timed(PointRecordInput& input);

class SweepWalk {
 public:
  explicit SweepWalk(const Plan& plan);

  // Planned points come in their order. A load measured too slow comes again at once; loads between
  // the admitted and the refused one come when the last planned point of their series has ended.
  // Those have indices beyond the plan's. Absent at the end.
  std::optional<SweepPoint> next();
  std::optional<Refusal> refusal(const SweepPoint& point, const std::string& plan_reason) const {
    return refusal_of(point, plan_reason, stops_);
  }
  // Of the point that next() gave last.
  void end(const SweepPoint& point, const PointEnd& end);
  // A signal: planned points still come, so that each has its record; others do not.
  void close();

  // Planned points, those added so far, and as many as the search at hand may still need.
  int num_points() const;

 private:
  struct Series {
    LoadSearch search;
    int planned_left = 0;
  };
  Series& series_of(const SweepPoint& point);
  SweepPoint added(std::int64_t tokens, LoadFrom from, int attempt);

  const Plan& plan_;
  std::map<std::string, Series> series_;
  LadderStops stops_;
  std::size_t next_planned_ = 0;
  int num_added_ = 0;
  bool is_closed_ = false;
  Series* current_ = nullptr;  // of the last point
  SweepPoint last_;
};

}  // namespace epsweep
