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

TEST(WeightBytes, follow_the_slots) {
  const ModelShape model = deepseek_v3_like();
  const std::vector<std::int64_t> bytes =
      weight_bytes_per_rank(model, DType::bf16, {2, 1, 1, 1});
  EXPECT_EQ(bytes, (std::vector<std::int64_t>{176'160'768, 88'080'384, 88'080'384, 88'080'384}));
  EXPECT_EQ(weight_bytes_per_rank(model, DType::bf16, {1, 0})[1], 0);
}

}  // namespace
}  // namespace epsweep
