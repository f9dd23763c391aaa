// Declared noise, as factors that anybody can compute again.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "plan/sim_costs.h"

namespace epsweep {

// Which of the passes of a point a time belongs to.
enum class SimPass : std::uint64_t { aligned, chained };

// Of one rank in one pass of one point.
class RankNoise {
 public:
  // `point_key`: of a point and repeat; points with different keys have independent noise.
  RankNoise(const SimCosts::Noise& noise, std::uint64_t point_key, int world_rank, SimPass pass);
  // Of the time with this number within the pass.
  double factor(std::uint64_t index) const;
  bool is_silent() const { return sigma_ == 0 && run_factor_ == 1; }

 private:
  double sigma_, run_factor_;
  RandomStream stream_;
};

}  // namespace epsweep
