#include "cuda/gemm_choice.h"

#include <algorithm>
#include <limits>

namespace epsweep::cuda {

std::optional<std::size_t> best_candidate(std::span<const GemmChoice::Candidate> candidates) {
  double shortest_us = std::numeric_limits<double>::infinity();
  for (const GemmChoice::Candidate& candidate : candidates) {
    if (candidate.us) shortest_us = std::min(shortest_us, *candidate.us);
  }
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const GemmChoice::Candidate& candidate = candidates[i];
    if (!candidate.us || *candidate.us > shortest_us * (1 + kChoiceNoise)) continue;
    const auto is_better = [&candidate](const GemmChoice::Candidate& than) {
      if (candidate.kernel_calls != than.kernel_calls) {
        return candidate.kernel_calls < than.kernel_calls;
      }
      return *candidate.us < *than.us;
    };
    if (!best || is_better(candidates[*best])) best = i;
  }
  return best;
}

}  // namespace epsweep::cuda
