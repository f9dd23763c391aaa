#include "app/point_clock.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"

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

void put_on_common_axis(const std::vector<AlignedClock>& clocks, std::size_t stride,
                        std::span<double> values) {
  EPS_EXPECT(!clocks.empty() && values.size() % (clocks.size() * stride) == 0,
             "every rank has a clock and equally many times");
  const std::size_t per_rank = values.size() / clocks.size();
  for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
    const std::span<double> own = values.subspan(rank * per_rank, per_rank);
    for (std::size_t i = 0; i < per_rank; i += stride) {
      own[i] = clocks[rank].map.common_s(own[i]);
      own[i + 1] = clocks[rank].map.common_s(own[i + 1]);
    }
  }
}

double order_bound_s(const std::vector<AlignedClock>& clocks) {
  std::map<int, double> bound_of_domain;
  for (const AlignedClock& clock : clocks) {
    double& bound_s = bound_of_domain[clock.domain];
    bound_s = std::max(bound_s, clock.map.bound_s);
  }
  if (bound_of_domain.size() < 2) return 0;
  std::vector<double> bounds_s;
  for (const auto& [domain, bound_s] : bound_of_domain) bounds_s.push_back(bound_s);
  std::ranges::partial_sort(bounds_s, bounds_s.begin() + 2, std::greater());
  return bounds_s[0] + bounds_s[1];
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
