#include "app/point_clock.h"

#include <cmath>
#include <set>

#include "base/error.h"
#include "report/timing_table.h"

namespace epsweep {
namespace {

Json alignment_json(const ClockAlignment& alignment) {
  return {alignment.own_s, alignment.offset_s, alignment.bound_s};
}

ClockAlignment alignment_of(const Json& json) {
  return {.own_s = json[0].get<double>(),
          .offset_s = json[1].get<double>(),
          .bound_s = json[2].get<double>()};
}

}  // namespace

Json clock_facts_json(const PointClock& clock) {
  return {clock.domain, alignment_json(clock.before), alignment_json(clock.after)};
}

AlignedClock aligned_clock(const Json& facts) {
  return {.domain = facts[0].get<int>(),
          .map = clock_map(alignment_of(facts[1]), alignment_of(facts[2]))};
}

void put_on_common_axis(const std::vector<AlignedClock>& clocks, std::span<double> values) {
  EPS_EXPECT(!clocks.empty() && values.size() % (clocks.size() * kNumMeasures) == 0,
             "every rank has a clock and equally many times");
  constexpr auto kBegin = static_cast<std::size_t>(Measure::begin_s);
  constexpr auto kEnd = static_cast<std::size_t>(Measure::end_s);
  const std::size_t per_rank = values.size() / clocks.size();
  for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
    const std::span<double> own = values.subspan(rank * per_rank, per_rank);
    for (std::size_t i = 0; i < per_rank; i += kNumMeasures) {
      own[i + kBegin] = clocks[rank].map.common_s(own[i + kBegin]);
      own[i + kEnd] = clocks[rank].map.common_s(own[i + kEnd]);
    }
  }
}

ClockReport clock_report(const std::vector<AlignedClock>& clocks) {
  ClockReport report;
  std::set<int> domains;
  for (const AlignedClock& clock : clocks) {
    domains.insert(clock.domain);
    report.bound_s_of_rank.push_back(clock.map.bound_s);
    const auto drift_ppm = clock.map.drift_ppm();
    if (clock.domain == 0 || !drift_ppm) continue;
    if (!report.worst_drift_ppm || std::abs(*drift_ppm) > std::abs(*report.worst_drift_ppm)) {
      report.worst_drift_ppm = drift_ppm;
      report.worst_drift_bound_ppm = clock.map.drift_bound_ppm();
    }
  }
  report.domains = static_cast<int>(domains.size());
  return report;
}

}  // namespace epsweep
