// Where the costs of predicted points come from.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "costs/stage_costs.h"
#include "plan/plan.h"
#include "report/calibration.h"
#include "report/summary.h"

namespace epsweep {

class VirtualRanks;  // app/virtual_ranks.h
struct VirtualPoint;

struct PredictionSource {
  std::string label;  // "calibration DIR", or "hardware NAME alone: nothing was calibrated"
  std::optional<Calibration> calibration;  // absent: the experiment's `sim` has the costs
  // Who measures what ranks compute by themselves; null: that is predicted too.
  VirtualRanks* virtual_ranks = nullptr;
};

// Why no calibration predicts the point; absent if one may.
std::optional<std::string> reason_not_to_predict(const SweepPoint& point);

// Throws ConfigError where the calibration lacks what a point of the plan needs, or never crossed a
// fabric boundary that the point's groups cross. Points that cannot run, or that no calibration
// predicts, are not looked at.
void check_predictable(const Calibration& calibration, const Plan& plan, int num_ranks);

// What a predicted point's record says of itself. low and high: the same point at the ends of all
// intervals; absent without a calibration, unless compute was measured: then only of its stages, as
// a hardware file's exchange has no interval.
struct PredictedSummaries {
  const PointSummary* central = nullptr;
  const PointSummary* low = nullptr;
  const PointSummary* high = nullptr;
};
Json predicted_json(const PredictionSource& source, const PredictedSummaries& summaries,
                    const Distance& distance);
// With what was measured for it: null where nothing was.
void put_measured_compute(const VirtualPoint& measured, Json& prediction);

}  // namespace epsweep
