#include "report/clock_report.h"

#include <algorithm>
#include <string>

namespace epsweep {

Json clock_report_json(const std::optional<ClockReport>& report) {
  if (!report.has_value()) return nullptr;
  constexpr double kUsPerS = 1e6;
  Json bounds = Json::array();
  double worst_s = 0;
  for (const double bound_s : report->bound_s_of_rank) {
    bounds.push_back(bound_s * kUsPerS);
    worst_s = std::max(worst_s, bound_s);
  }
  return {{"domains", report->domains},
          {"bound_us_of_rank", std::move(bounds)},
          {"worst_bound_us", worst_s * kUsPerS},
          {"worst_drift_ppm", json_or_null(report->worst_drift_ppm)},
          {"worst_drift_bound_ppm", json_or_null(report->worst_drift_bound_ppm)}};
}

std::string clock_report_formula() {
  return "marks of all ranks are on rank 0's clock; domains: ranks that read one CLOCK_MONOTONIC "
         "(same boot and time namespace), which need no alignment (bound 0); others: offset by "
         "ping-pongs before and after the point, linear in between; bound: half of the shortest "
         "round trip, added up along the tree of ranks, the larger of before and after; two marks "
         "of ranks a and b closer than bound a + bound b cannot be ordered unless a and b share a "
         "clock; drift: (offset after - offset before) / time between";
}

}  // namespace epsweep
