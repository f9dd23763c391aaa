// What a simulated point's time is made of, by the rates that were declared.
#pragma once

#include <optional>

#include "app/gathered_times.h"
#include "costs/point_workload.h"
#include "plan/plan.h"
#include "report/breakdown.h"

namespace epsweep {

// Where costs come from: `sim` of the experiment, or another run's times, which are no rates.
enum class CostsFrom { declaration, calibration };

// Stages whose times are declared outright have no rate behind them.
// Where groups span domains the line is that of links between domains, and rows are those that
// cross them, in the proportion of the whole group's.
std::optional<Breakdown> break_down_simulated(const SweepPoint& point, const GroupLayout& layout,
                                              CostsFrom costs_from, const PointWorkload& workload,
                                              const GatheredTimes& times,
                                              const PointSummary& summary,
                                              std::vector<std::vector<FfnWork>> uniform_ffn);

}  // namespace epsweep
