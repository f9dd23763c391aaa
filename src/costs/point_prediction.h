// What the ceilings of its run say a point will take, before it runs: nothing in here is a time of
// the point itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "costs/point_ceilings.h"
#include "costs/point_workload.h"
#include "costs/roofline.h"
#include "plan/plan.h"
#include "plan/sweep_point.h"

namespace epsweep {

// Of one layer on average over the point's layers. alpha_s and bytes_s of the line of bare
// exchanges (alpha + bytes / beta) over what its busiest rank moves, by layer.
struct PredictedExchange {
  double alpha_s = 0, bytes_s = 0;
  double bytes = 0;  // of the busiest rank, sent or received, whichever is more; rows and metadata
  std::string letter;  // by which rows were counted: "A", "D", or "padded"

  double seconds() const { return alpha_s + bytes_s; }
};

// Of one layer: mean over layers of the maximum over ranks of
//   max(weight bytes and scales / read ceiling, operations / GEMM ceiling), the rank's own
//   ceilings.
struct PredictedFfn {
  double seconds = 0;
  // Of the ranks that decide: their weight stream and their operations, each by itself.
  double weight_s = 0, compute_s = 0;
  int world_rank = 0;  // that decides most layers
  RooflineBound bound() const {
    return weight_s >= compute_s ? RooflineBound::memory : RooflineBound::compute;
  }
};

struct PointPrediction {
  // Absent without a line of the point's layout, and where nothing leaves a rank.
  std::optional<PredictedExchange> dispatch, combine;
  std::optional<PredictedFfn> ffn;  // absent where a rank has no ceiling
};

// Skew is that of the point's own trace and placement. Exchanges: with exchange unit `assignment`
// rows by letter A, self left out; with `rank` by letter D, and in dispatch 8 bytes of metadata for
// every chosen expert, averaged over copies; with a transport of fixed capacity what every rank is
// padded to.
PointPrediction predict_point(const SweepPoint& point, const PointWorkload& workload,
                              const GroupLayout& layout, const PointCeilings& ceilings);

}  // namespace epsweep
