// Breakdowns as records hold them.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "costs/point_ceilings.h"
#include "costs/point_workload.h"
#include "report/breakdown.h"

namespace epsweep {

// `ceilings`: absent where none were measured. uniform_ffn: as costs/uniform_ffn.h has it.
BreakdownWork breakdown_work(const SweepPoint& point, const PointWorkload& workload,
                             const std::optional<PointCeilings>& ceilings,
                             std::vector<std::vector<FfnWork>> uniform_ffn);

// {"period_us", "parts_us", "model"}; null for none.
Json breakdown_json(const std::optional<Breakdown>& breakdown);
// Of a record; absent where it has none, or not all of one.
std::optional<Breakdown> breakdown_of(const Json& record);
std::string breakdown_formula();

}  // namespace epsweep
