#include "costs/chain_weights.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

TEST(ChainWeights, AreColdWhereNothingIsReadTwiceOrCachesAreSmall) {
  SweepPoint point;
  point.layers = 4;  // a chain of four
  EXPECT_EQ(chain_weights(point, 1, 1000), "cold");
  point.layers = 2;  // twice through both
  EXPECT_EQ(chain_weights(point, 1999, 1000), "revisited");
  EXPECT_EQ(chain_weights(point, 2000, 1000), "cold");
  point.weight_cache = WeightCache::warm;
  EXPECT_EQ(chain_weights(point, 2000, 1000), "warm");
}

}  // namespace
}  // namespace epsweep
