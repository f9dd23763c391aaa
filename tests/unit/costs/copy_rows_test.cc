#include "costs/copy_rows.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

// Four experts on two ranks. Rank 0's tokens: {0, 1}, {0, 2}, {1, 0}; rank 1's: {3, 2}.
TEST(CopyRows, by_hand) {
  const Trace trace{
      .num_tokens = 4, .top_k = 2, .num_experts = 4, .experts = {0, 1, 0, 2, 1, 0, 3, 2}};
  const Placement placement = make_placement("contiguous", {.num_experts = 4, .ep_size = 2});
  const LayerCopies layer = count_copies(trace, placement, {{0, 3}, {3, 4}}, 48);
  EXPECT_EQ(layer.max_sent, 4);      // rank 0: three to itself, one to rank 1
  EXPECT_EQ(layer.max_received, 3);  // rank 0 from itself
  // Granules of 16 bytes: five uses to itself are three, one is one; rank 1's two are one.
  EXPECT_EQ(layer.metadata_bytes, (3 + 1 + 1) * 16);
}

}  // namespace
}  // namespace epsweep
