// From the clock each rank reads to one axis for the marks of all, for one point.
#pragma once

#include <span>
#include <vector>

#include "base/clock_map.h"
#include "base/json.h"
#include "base/rank_clock.h"
#include "report/clock_report.h"

namespace epsweep {

// What a rank knows of its clock around a point.
struct PointClock {
  RankClock reads;
  int domain = 0;  // see ClockDomains
  ClockAlignment before, after;
  double align_s = 0;  // spent on both, waiting for other ranks included
};

// How a rank's clock travels to rank 0, and what it is there.
struct AlignedClock {
  int domain = 0;
  ClockMap map;
};
Json clock_facts_json(const PointClock& clock);
AlignedClock aligned_clock(const Json& facts);

// `values`: times of all ranks, [rank] outermost and as many as there are clocks, in pieces of
// `stride` values that begin with a begin and an end; these move from the rank's clock to the
// common axis, the others stay.
void put_on_common_axis(const std::vector<AlignedClock>& clocks, std::size_t stride,
                        std::span<double> values);

// Times of any two ranks can be compared within this: 0 where all read one clock, else the bounds
// of the two worst clocks together.
double order_bound_s(const std::vector<AlignedClock>& clocks);

ClockReport clock_report(const std::vector<AlignedClock>& clocks);

}  // namespace epsweep
