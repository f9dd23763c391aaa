// What running a point needs from outside.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/stage.h"

namespace epsweep {

// The runner never sees MPI.
struct RunnerHooks {
  // Maximum over all ranks that run the point; also how they start an iteration together.
  std::function<int(int)> all_max;
  // The same of each of the values, in place.
  std::function<void(std::span<double>)> all_max_s;
  // Returns when all those ranks have come.
  std::function<void()> align;
  // Nonzero if this rank wants everybody to stop (a signal's number).
  std::function<int()> stop_wish;
  // Told before anything that may take long.
  std::function<void(const std::string& phase)> enter_phase;
  // Sees a layer's output before the oracle does; injected faults may throw here.
  std::function<void()> before_oracle;
  // Called in timed iterations, with the iteration's number; `before` comes behind the alignment.
  // Empty unless a delay is injected.
  std::function<void(int iteration, Stage stage, DelayPlace place)> delay;
};

}  // namespace epsweep
