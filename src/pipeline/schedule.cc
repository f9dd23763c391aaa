#include "pipeline/schedule.h"

namespace epsweep {

std::vector<Step> serial_schedule() {
  std::vector<Step> steps;
  for (int stage = 0; stage < kNumStages; ++stage) {
    steps.push_back({.stage = static_cast<Stage>(stage), .chunk = 0, .lane = 0, .after = -1});
  }
  return steps;
}

}  // namespace epsweep
