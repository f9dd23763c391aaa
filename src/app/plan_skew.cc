// Skew that was asked for by its outcome, beside what the drawn tokens have.
#include <algorithm>

#include <fmt/format.h>

#include "app/plan_section.h"
#include "base/text.h"
#include "report/point_record.h"
#include "workload/skew_target.h"

namespace epsweep {
namespace {

// Over layers: "3.02", or "2.98..3.02".
std::string spread_text(const std::vector<double>& layers) {
  const auto [least, most] = std::ranges::minmax(layers);
  const std::string low = fmt::format("{:.4g}", least), high = fmt::format("{:.4g}", most);
  return low == high ? low : low + ".." + high;
}

std::string skew_text(const PlannedPoint& planned,
                      std::string (*text)(const PlannedPoint& planned, const RealisedSkew& skew)) {
  return planned.work.realised_skew ? text(planned, *planned.work.realised_skew) : "-";
}

using P = SweepPoint;
using Planned = PlannedPoint;
using Skew = RealisedSkew;

std::string asked(const P&, const Planned& planned) {
  return skew_text(planned,
                   [](const Planned&, const Skew& s) { return fmt::format("{:g}", s.asked); });
}
std::string realised(const P&, const Planned& planned) {
  return skew_text(planned,
                   [](const Planned&, const Skew& s) { return spread_text(s.max_over_mean); });
}
std::string rank_imbalance(const P&, const Planned& planned) {
  return skew_text(planned, [](const Planned& p, const Skew&) {
    return short_number(p.rank_rows.max_over_mean);
  });
}
std::string found(const P&, const Planned& planned) {
  return skew_text(planned, [](const Planned&, const Skew& s) {
    return fmt::format("{} {}", s.param, spread_text(s.values));
  });
}

}  // namespace

PlanSection skew_section() {
  return {.title = "Skew asked for",
          .legend =
              "asked, realised: rows of the hottest expert over mean rows, in each layer's own "
              "tokens; within 1 % or one row. rank: rows of the fullest rank over the mean, which "
              "EP size and placement decide. found: the parameter that does it, over layers.",
          .applies =
              [](const SweepSpec& spec, const LaunchLimits&) {
                return std::ranges::any_of(spec.routing, [](const Routing& routing) {
                  return asked_max_over_mean(routing).has_value();
                });
              },
          .columns = {{{"asked"}, asked},
                      {{"realised"}, realised},
                      {{"rank max/mean"}, rank_imbalance},
                      {{"found", Align::left}, found}},
          .put_json =
              [](const P&, const Planned& planned, Json& json) {
                json["realised_skew"] = realised_skew_json(planned.work.realised_skew);
              }};
}

}  // namespace epsweep
