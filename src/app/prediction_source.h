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

struct PredictionSource {
  std::string label;  // "calibration DIR", or "hardware NAME alone: nothing was calibrated"
  std::optional<Calibration> calibration;  // absent: the experiment's `sim` has the costs
};

// Why no calibration predicts the point; absent if one may.
std::optional<std::string> reason_not_to_predict(const SweepPoint& point);

// Throws ConfigError where the calibration lacks what a point of the plan needs, or never crossed a
// fabric boundary that the point's groups cross. Points that cannot run, or that no calibration
// predicts, are not looked at.
void check_predictable(const Calibration& calibration, const Plan& plan, int num_ranks);

// What a predicted point's record says of itself. low and high: the same point at the ends of all
// intervals; absent without a calibration.
struct PredictedSummaries {
  const PointSummary* central = nullptr;
  const PointSummary* low = nullptr;
  const PointSummary* high = nullptr;
};
Json predicted_json(const PredictionSource& source, const PredictedSummaries& summaries,
                    const Distance& distance);

}  // namespace epsweep
