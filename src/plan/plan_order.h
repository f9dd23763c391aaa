// In which order the points of a repeat run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace epsweep {

// A repeat's points as they are planned: [outer][load][inner], where a series is one (outer, inner)
// at all its loads.
struct RepeatShape {
  std::size_t num_outer = 1, num_loads = 1, num_inner = 1;
  std::size_t num_points() const { return num_outer * num_loads * num_inner; }
};

// Positions in the planned order. Series are shuffled, by seed and repeat, so that what drifts on a
// machine does not always meet the same ones; loads of a series stay in their order, for a limit
// that a load has reached ends those above it.
std::vector<std::size_t> shuffled_series(const RepeatShape& shape, std::uint64_t seed, int repeat);

}  // namespace epsweep
