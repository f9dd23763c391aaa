// When timed iterations end.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/sweep_spec.h"

namespace epsweep {

struct IterationPlan {
  int fewest = 1;
  std::optional<IterationTarget> target;  // absent: exactly the fewest
};

enum class StopReason {
  count,      // a fixed number was asked for
  precision,  // the median is known well enough
  time,       // the time limit came first
  most,       // the largest number came first
};
inline const std::vector<std::string> kStopReasonNames = {"count", "precision", "time", "most"};

// Half the 95 % interval of the median / the median; absent where there is no interval or median 0.
std::optional<double> relative_precision(std::span<const double> samples);

// Iterations to run before the rule is asked again: the fewest first, and then a quarter of what
// was done, so that asking costs little.
int next_batch(const IterationPlan& plan, int num_done);

// Absent while iterations go on. `slowest_s`: by iteration, the maximum over ranks; `elapsed_s`:
// the same of all iterations. Both are alike on all ranks, so they decide alike.
std::optional<StopReason> stop_reason(const IterationPlan& plan, std::span<const double> slowest_s,
                                      double elapsed_s);

}  // namespace epsweep
