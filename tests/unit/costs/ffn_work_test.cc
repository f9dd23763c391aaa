#include "costs/ffn_work.h"

#include <vector>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

ModelShape deepseek_v3_like() {
  ModelShape model;
  model.hidden_dim = model.expert_io_dim = 7168;
  model.ffn_dim = 2048;
  model.num_experts = 256;
  model.top_k = 8;
  return model;
}

TEST(FfnWork, eight_rows_per_expert) {
  const ModelShape model = deepseek_v3_like();
  EXPECT_EQ(model.expert_params(), 44'040'192);
  const FfnWork work = ffn_work(model, DType::bf16, std::vector<std::int64_t>(256, 8));
  EXPECT_EQ(work.routed_rows, 2048);
  EXPECT_EQ(work.touched_experts, 256);
  EXPECT_EQ(work.flops, 180'388'626'432);
  EXPECT_EQ(work.weight_bytes, 22'548'578'304);
}

TEST(FfnWork, experts_without_rows_cost_nothing) {
  const FfnWork work = ffn_work(deepseek_v3_like(), DType::fp32, {0, 5, 0, 1});
  EXPECT_EQ(work.routed_rows, 6);
  EXPECT_EQ(work.touched_experts, 2);
  EXPECT_EQ(work.flops, 528'482'304);
  EXPECT_EQ(work.weight_bytes, 352'321'536);
  EXPECT_EQ(ffn_work(deepseek_v3_like(), DType::fp32, {}).weight_bytes, 0);
}

TEST(FfnWork, two_gemms_and_a_latent_width) {
  ModelShape model = deepseek_v3_like();
  model.gemms_per_expert = 2;
  model.expert_io_dim = 1024;
  EXPECT_EQ(ffn_work(model, DType::bf16, {1}).flops, 8'388'608);
}

// One byte a weight. Scales: one fp32 for each of two matrices; or gate_up of 4096 x 7168, 32 x 56
// blocks, and down of 7168 x 2048, 56 x 16 blocks, whose rows of 56 and 16 scales are multiples
// of 4.
TEST(FfnWork, fp8_has_half_the_bytes_and_scales) {
  const FfnWork work = ffn_work(deepseek_v3_like(), DType::fp8, {0, 5, 0, 1});
  EXPECT_EQ(work.weight_bytes, 2 * 44'040'192);
  EXPECT_EQ(work.weight_scale_bytes, 2 * 8);
  EXPECT_EQ(work.flops, 528'482'304);
  const FfnWork blocks = ffn_work(deepseek_v3_like(), DType::fp8_block128, {0, 5, 0, 1});
  EXPECT_EQ(blocks.weight_bytes, work.weight_bytes);
  EXPECT_EQ(blocks.weight_scale_bytes, 2 * 4 * (32 * 56 + 56 * 16));
  EXPECT_EQ(ffn_work(deepseek_v3_like(), DType::bf16, {1}).weight_scale_bytes, 0);
}

// Rows of 3 scales become rows of 4.
TEST(FfnWork, rows_of_scales_are_padded) {
  ModelShape model = deepseek_v3_like();
  model.gemms_per_expert = 2;
  model.expert_io_dim = 272;  // 3 blocks of 128, the last one short
  model.ffn_dim = 128;
  EXPECT_EQ(expert_scale_bytes(model, DType::fp8_block128), 4 * (1 * 4 + 3 * 4));
}

TEST(WeightBytes, follow_the_slots) {
  const ModelShape model = deepseek_v3_like();
  const std::vector<std::int64_t> bytes = weight_bytes_per_rank(model, DType::bf16, {2, 1, 1, 1});
  EXPECT_EQ(bytes, (std::vector<std::int64_t>{176'160'768, 88'080'384, 88'080'384, 88'080'384}));
  EXPECT_EQ(weight_bytes_per_rank(model, DType::bf16, {1, 0})[1], 0);
}

}  // namespace
}  // namespace epsweep
