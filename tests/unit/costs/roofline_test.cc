#include "costs/roofline.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

// An expert has 3 * 100 * 10 = 3000 parameters; rows are 100 wide.
ModelShape model() {
  ModelShape shape;
  shape.expert_io_dim = 100;
  shape.ffn_dim = 10;
  return shape;
}

// Two layers with 8 rows each on 4 experts each: 16 * 2 * 3000 FLOPs, 8 * 6000 bytes.
FfnWork work() {
  return {.routed_rows = 16, .touched_experts = 8, .flops = 96'000, .weight_bytes = 48'000};
}

TEST(Roofline, OfAMemoryBoundLayerByHand) {
  // A layer: 48,000 FLOPs; 24,000 bytes of weights, 8 rows * (200 in + 200 out) = 3,200 bytes.
  const auto roof = ffn_roofline(work(), model(), DType::bf16, 2, 1e-6,
                                 {.flop_per_s = 200e9, .read_bytes_per_s = 68e9});
  ASSERT_TRUE(roof);
  EXPECT_DOUBLE_EQ(roof->flops, 48'000);
  EXPECT_DOUBLE_EQ(roof->weight_bytes, 24'000);
  EXPECT_DOUBLE_EQ(roof->activation_bytes, 3'200);
  EXPECT_DOUBLE_EQ(roof->intensity(), 48'000.0 / 27'200);
  // 68e9 / 27,200 layers a second: 120 GFLOP/s, less than the 200 of the GEMM.
  EXPECT_NEAR(roof->attainable_flop_per_s(), 120e9, 1);
  EXPECT_EQ(roof->bound(), RooflineBound::memory);
  EXPECT_NEAR(roof->achieved_flop_per_s(), 48e9, 1);
  EXPECT_NEAR(roof->share(), 0.4, 1e-12);
  EXPECT_NEAR(roof->peak_share(), 0.24, 1e-12);
}

TEST(Roofline, OfAComputeBoundLayer) {
  const auto roof = ffn_roofline(work(), model(), DType::bf16, 2, 1e-6,
                                 {.flop_per_s = 96e9, .read_bytes_per_s = 68e9});
  ASSERT_TRUE(roof);
  EXPECT_EQ(roof->bound(), RooflineBound::compute);
  EXPECT_NEAR(roof->attainable_flop_per_s(), 96e9, 1);
  EXPECT_NEAR(roof->share(), 0.5, 1e-12);
  EXPECT_NEAR(roof->peak_share(), roof->share(), 1e-12);
}

TEST(Roofline, ScalesAreWeightBytesAndFp32RowsAreTwiceAsWide) {
  FfnWork scaled = work();
  scaled.weight_scale_bytes = 20;
  const RankRates rates = {.flop_per_s = 1e9, .read_bytes_per_s = 1e9};
  EXPECT_DOUBLE_EQ(ffn_roofline(scaled, model(), DType::fp8, 2, 1, rates)->weight_bytes, 24'010);
  EXPECT_DOUBLE_EQ(ffn_roofline(scaled, model(), DType::fp8, 2, 1, rates)->activation_bytes, 3'200);
  EXPECT_DOUBLE_EQ(ffn_roofline(work(), model(), DType::fp32, 2, 1, rates)->activation_bytes,
                   6'400);
}

TEST(Roofline, WithoutRowsTimeOrCeilingsThereIsNone) {
  const RankRates rates = {.flop_per_s = 1e9, .read_bytes_per_s = 1e9};
  EXPECT_FALSE(ffn_roofline({}, model(), DType::bf16, 2, 1e-6, rates));
  EXPECT_FALSE(ffn_roofline(work(), model(), DType::bf16, 2, 0, rates));
  EXPECT_FALSE(ffn_roofline(work(), model(), DType::bf16, 2, 1e-6, {.flop_per_s = 1e9}));
}

// 600 and 40 bytes at 100 a second, 3,000 operations at 500 a second.
TEST(FfnTimes, TheLongerHidesTheOther) {
  FfnWork work;
  work.weight_bytes = 600;
  work.weight_scale_bytes = 40;
  work.flops = 3000;
  const FfnTimes times = ffn_times(work, {.flop_per_s = 500, .read_bytes_per_s = 100});
  EXPECT_DOUBLE_EQ(times.weight_s, 6.4);
  EXPECT_DOUBLE_EQ(times.compute_s, 6);
  EXPECT_DOUBLE_EQ(times.seconds(), 6.4);
}

}  // namespace
}  // namespace epsweep
