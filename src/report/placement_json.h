// A placement's score as plans and records show it.
#pragma once

#include "base/json.h"
#include "costs/placement_score.h"

namespace epsweep {

Json placement_score_json(const PlacementScore& score);

// What its keys mean; part of record_formulas().
Json placement_score_formulas();

}  // namespace epsweep
