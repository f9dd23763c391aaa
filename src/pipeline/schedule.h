// The order of a layer's steps as data.
#pragma once

#include <vector>

#include "base/stage.h"

namespace epsweep {

struct Step {
  Stage stage = Stage::router;
  int chunk = 0;   // which part of the rank's tokens
  int lane = 0;    // which queue it is issued on
  int after = -1;  // position of a step on another lane that must be done before; -1 for none
};

// One chunk, one lane, stage after stage.
std::vector<Step> serial_schedule();

}  // namespace epsweep
