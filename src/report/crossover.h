// From which load on a wider EP wins, and from which on it no longer does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "report/verdict.h"

namespace epsweep {

// What repeats show of a pair of EP sizes at one load.
struct LoadVerdict {
  std::int64_t tokens = 0;
  Shown shown = Shown::nothing;  // `faster`: the wider one takes less time
  double ratio = 1;              // of medians, wider / narrower
};

enum class CrossingKind { starts_to_win, stops_winning };

// The change lies above `after` and at most at `by`: the nearest loads whose repeats show the two
// sides of it. Between them nothing is shown.
struct Crossing {
  CrossingKind kind = CrossingKind::starts_to_win;
  std::int64_t after = 0, by = 0;
  // Where the medians are equal, between the loads around it: linear in the logarithms of tokens
  // and ratio. Absent where they cross several times.
  std::optional<double> estimate;
};

// Of one ladder; loads are sorted first, and each should come once.
std::vector<Crossing> crossings(std::vector<LoadVerdict> loads);

}  // namespace epsweep
