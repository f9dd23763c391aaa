// Whatever streams and threads do in which order, a layer gives the same bits: 50 seeds.
#include <gtest/gtest.h>

#include "hostcuda/layer_scenarios.h"

namespace epsweep {
namespace {

TEST(Interleaving, fifty_seeds_give_the_same_bits) {
  Scenarios scenarios;
  for (unsigned long long seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(scenarios.problem_under(seed, seed, Scenarios::Extent::one_point), "")
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace epsweep
