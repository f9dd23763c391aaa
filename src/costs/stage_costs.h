// What the stages of a launch cost, as its own points showed: the costs a prediction is made with.
#pragma once

#include <array>
#include <optional>

#include "base/stage.h"
#include "costs/exchange_fit.h"
#include "costs/exchange_model.h"
#include "costs/ffn_table.h"

namespace epsweep {

// seconds = alpha_s + x / beta. x: tokens of a rank (router, permute, unpermute; exchanges of a
// rank with itself, EP1), or its peers (count_exchange).
using StageLine = ExchangeLine;

struct StageCosts {
  FfnTable ffn = FfnTable({});
  ExchangeModel dispatch, combine;            // of EP sizes above 1
  std::optional<StageLine> count_by_peers;    // of EP sizes above 1
  int narrowest_count = 0, widest_count = 0;  // EP sizes of that
  // By tokens of a rank: router, permute, unpermute at any EP size; exchanges at EP1 only.
  std::array<std::optional<StageLine>, kNumStages> by_tokens;
};

// Which end of the interval of every forecast a rank's stages take.
enum class Bound { low, central, high };
double at_bound(const TimeForecast& forecast, Bound bound);

// How far from the calibration the ranks of a point are, the farthest of them.
struct Distance {
  double exchange_doublings = 0, ffn_doublings = 0;
  FfnBasis ffn_basis = FfnBasis::interpolated;
};

// The line through (x, seconds) where they grow, else the mean of the seconds; absent for none.
std::optional<StageLine> fit_stage(std::span<const ExchangeSample> samples);

}  // namespace epsweep
