#include "sim/sim_noise.h"

#include <cmath>
#include <numbers>

namespace epsweep {
namespace {

// Standard normal (Box and Muller 1958); 1 - u is never 0.
double normal(const RandomStream& stream, std::uint64_t index) {
  return std::sqrt(-2 * std::log(1 - stream.uniform(2 * index))) *
         std::cos(2 * std::numbers::pi * stream.uniform(2 * index + 1));
}

double run_factor(const SimCosts::Noise& noise, std::uint64_t point_key) {
  if (noise.run == 0) return 1;
  constexpr std::uint64_t kNoRank = UINT64_MAX;
  const RandomStream stream(noise.seed, Stream::simulation, point_key, kNoRank);
  return std::exp(noise.run * normal(stream, 0));
}

}  // namespace

RankNoise::RankNoise(const SimCosts::Noise& noise, std::uint64_t point_key, int world_rank,
                     SimPass pass)
    : sigma_(noise.relative),
      run_factor_(run_factor(noise, point_key)),
      stream_(noise.seed, Stream::simulation, point_key, static_cast<std::uint64_t>(world_rank),
              static_cast<std::uint64_t>(pass)) {}

double RankNoise::factor(std::uint64_t index) const {
  if (sigma_ == 0) return run_factor_;
  return run_factor_ * std::exp(sigma_ * normal(stream_, index));
}

}  // namespace epsweep
