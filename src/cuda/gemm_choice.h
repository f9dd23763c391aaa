// Which of several measured kernels is taken.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "device/grouped_gemm.h"

namespace epsweep::cuda {

// Times that differ by less are not told apart.
inline constexpr double kChoiceNoise = 0.02;

// Of the candidates whose time is within kChoiceNoise of the shortest: those with the fewest calls,
// of these the fastest, of these the first. Absent if none was measured.
std::optional<std::size_t> best_candidate(std::span<const GemmChoice::Candidate> candidates);

}  // namespace epsweep::cuda
