#include "costs/serving_memory.h"

#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

#include "base/text.h"

namespace epsweep {
namespace {

ModelShape shipped(const std::string& name) {
  const std::string path = EPSWEEP_SOURCE_DIR "/configs/models/" + name + ".yaml";
  return read_model_shape(parse_yaml(read_text_file(path), path), std::nullopt);
}

HardwareShape with_memory(std::int64_t bytes) {
  HardwareShape hardware;
  hardware.name = "h";
  hardware.memory_bytes = bytes;
  return hardware;
}

// 8 experts of 3 * 32 * 64 = 6144 parameters in 4 layers, 10,000 other parameters, 256 bytes of KV
// per token; EP4 with 4 redundant slots, so 3 slots on every rank; 10 tokens, 3 on two ranks.
SweepPoint small_point() {
  SweepPoint point;
  ModelShape& model = point.model;
  model.name = "small";
  model.hidden_dim = model.expert_io_dim = 64;
  model.ffn_dim = 32;
  model.num_experts = 8;
  model.top_k = 2;
  model.num_layers = model.num_moe_layers = 4;
  model.total_params = 6144 * 8 * 4 + 10'000;
  model.weight_dtype = "bf16";
  model.attention = {.kind = "gqa",
                     .kv_heads = 1,
                     .head_dim = 16,
                     .kv_lora_rank = {},
                     .qk_rope_head_dim = {},
                     .kv_layers = 4,
                     .kv_bytes_per_token = {},
                     .window_layers = {},
                     .window_tokens = {}};
  point.ep_size = 4;
  point.redundant_slots = 4;
  point.concurrency.tokens = 10;
  point.hardware = with_memory(1'000'000);
  point.serving = Serving{};
  point.serving->context_tokens = 100;
  point.serving->draft_tokens = 1;
  point.serving->memory_fraction = 0.5;
  point.serving->reserve_bytes = 1000;
  return point;
}

TEST(ServingMemory, SmallRankByHand) {
  const ServingMemory memory = serving_memory(small_point()).value();
  EXPECT_EQ(memory.usable_bytes, 500'000);
  EXPECT_EQ(memory.expert_weight_bytes, 3 * 6144 * 4 * 2);  // 147,456
  EXPECT_EQ(memory.non_expert_weight_bytes, 20'000);
  EXPECT_EQ(memory.mean_recv_rows, 5);
  EXPECT_EQ(memory.worst_recv_rows, 20);
  // 3 tokens send 6 rows; rows of 128 bytes; dispatch and combine.
  EXPECT_EQ(memory.exchange_bytes_mean, 2 * (6 + 5) * 128);
  EXPECT_EQ(memory.exchange_bytes_worst, 2 * (6 + 20) * 128);           // 6,656
  EXPECT_EQ(memory.activation_bytes, 3 * 64 * 8 + 20 * (64 + 32) * 2);  // 5,376
  EXPECT_EQ(memory.kv_room_bytes, 500'000 - 1000 - 147'456 - 20'000 - 6656 - 5376);
  EXPECT_EQ(memory.kv_bytes_per_sequence, 25'600);
  EXPECT_EQ(memory.sequences_per_rank, 2);  // 3 tokens, two for each sequence
  EXPECT_EQ(memory.kv_shortfall_bytes, 0);
  // Of one sequence on every rank: 2 tokens, 8 in the group, at most 16 rows received:
  // 25,600 + 2 * (4 + 16) * 128 + 2 * 64 * 8 + 16 * 96 * 2 = 34,816 of 331,544.
  EXPECT_EQ(memory.max_sequences_per_rank, 9);
  EXPECT_EQ(memory.max_sequences_per_group, 36);
  EXPECT_EQ(memory.max_tokens_per_step, 72);
  EXPECT_EQ(memory.max_rows_per_expert, 18);
  EXPECT_EQ(kv_stop(small_point()), std::nullopt);
}

// The largest load it names fits, and one more sequence on a rank does not.
TEST(ServingMemory, TheLargestLoadIsTheLargest) {
  SweepPoint point = small_point();
  point.concurrency.tokens = 72;
  EXPECT_EQ(kv_stop(point), std::nullopt);
  point.concurrency.tokens = 80;
  ASSERT_TRUE(kv_stop(point).has_value());
  EXPECT_EQ(kv_stop(point)->kind, StopKind::kv_memory);
  EXPECT_EQ(kv_stop(point)->at_tokens, 80);
}

// Case C45.
TEST(ServingMemory, CaseC45WorstAndMeanRowsReceived) {
  struct Rows {
    int num_experts, ep_size;
    std::int64_t worst, mean;
  };
  const Rows cases[] = {
      {256, 8, 8192, 1024}, {256, 32, 8192, 256}, {256, 64, 4096, 128}, {64, 32, 2048, 256}};
  for (const Rows& expected : cases) {
    SweepPoint point = small_point();
    point.model.num_experts = expected.num_experts;
    point.model.top_k = 8;
    point.model.total_params = 1'000'000'000;
    point.redundant_slots = 0;
    point.ep_size = expected.ep_size;
    point.concurrency.tokens = 1024;
    const ServingMemory memory = serving_memory(point).value();
    EXPECT_EQ(memory.worst_recv_rows, expected.worst) << expected.ep_size;
    EXPECT_EQ(memory.mean_recv_rows, static_cast<double>(expected.mean)) << expected.ep_size;
  }
}

// DeepSeek-V3 in fp8 on H200, numbers from a script of its own.
TEST(ServingMemory, DeepSeekV3OnH200) {
  SweepPoint point;
  point.model = shipped("deepseek-v3");
  point.hardware = with_memory(141'000'000'000);
  point.serving = Serving{};
  point.concurrency.tokens = 1024;
  point.ep_size = 8;
  const ServingMemory narrow = serving_memory(point).value();
  EXPECT_EQ(narrow.usable_bytes, 126'900'000'000);
  EXPECT_EQ(narrow.expert_weight_bytes, 81'738'596'352);
  EXPECT_EQ(narrow.non_expert_weight_bytes, 17'117'648'384);
  EXPECT_EQ(narrow.kv_room_bytes, 27'671'510'784);
  EXPECT_EQ(narrow.max_sequences_per_rank, 96);
  EXPECT_EQ(narrow.kv_shortfall_bytes, 9'171'255'552);
  const LadderStop stop = kv_stop(point).value();
  EXPECT_EQ(stop.reason,
            "128 sequences per rank of 4096 tokens need 34.31 GiB of KV, 118.18 GiB of h leave "
            "25.77 GiB: 8.54 GiB short; 96 fit");
  point.ep_size = 64;
  const ServingMemory wide = serving_memory(point).value();
  EXPECT_EQ(wide.expert_weight_bytes, 10'217'324'544);
  EXPECT_EQ(wide.kv_room_bytes, 99'392'667'392);
  EXPECT_EQ(wide.max_sequences_per_rank, 333);
  EXPECT_EQ(wide.kv_shortfall_bytes, 0);
}

TEST(ServingMemory, WeightsThatLeaveNoRoomSaySo) {
  SweepPoint point = small_point();
  point.hardware = with_memory(200'000);
  const ServingMemory memory = serving_memory(point).value();
  EXPECT_LT(*memory.kv_room_bytes, 0);
  EXPECT_EQ(memory.max_sequences_per_rank, 0);
  EXPECT_NE(kv_stop(point)->reason.find("weights and buffers alone exceed"), std::string::npos);
}

TEST(ServingMemory, WeightFormats) {
  SweepPoint point = small_point();
  point.model.weight_dtype = "mxfp4";  // experts only: the rest stays bf16
  const ServingMemory published = serving_memory(point).value();
  EXPECT_EQ(published.expert_weight_bytes, 3 * 6144 * 4 * 17 / 32);
  EXPECT_EQ(published.non_expert_weight_bytes, 20'000);
  point.serving->weight_dtype = "fp8";
  EXPECT_EQ(serving_memory(point)->expert_weight_bytes, 3 * 6144 * 4);
  EXPECT_EQ(serving_memory(point)->non_expert_weight_bytes, 10'000);
  point.serving->non_expert_weight_dtype = "bf16";
  EXPECT_EQ(serving_memory(point)->non_expert_weight_bytes, 20'000);
}

// Nothing is guessed: no total, no format, no KV constant means no KV room or no admitted load.
TEST(ServingMemory, UnknownIsAbsentAndStopsNothing) {
  SweepPoint point = small_point();
  point.hardware = with_memory(1000);  // nothing would fit
  point.model.total_params.reset();
  ServingMemory memory = serving_memory(point).value();
  EXPECT_EQ(memory.kv_room_bytes, std::nullopt);
  EXPECT_EQ(memory.kv_bytes_per_sequence, 25'600);  // is known all the same
  EXPECT_EQ(memory.max_sequences_per_rank, std::nullopt);
  EXPECT_NE(memory.unknown.find("total_params"), std::string::npos);
  EXPECT_EQ(kv_stop(point), std::nullopt);
  point = small_point();
  point.model.weight_dtype = "awq";
  EXPECT_NE(serving_memory(point)->unknown.find("'awq'"), std::string::npos);
  point = small_point();
  point.model.attention.kind = "compressed";
  memory = serving_memory(point).value();
  EXPECT_TRUE(memory.kv_room_bytes.has_value());
  EXPECT_EQ(memory.kv_bytes_per_sequence, std::nullopt);
  EXPECT_EQ(memory.max_sequences_per_rank, std::nullopt);
  EXPECT_NE(memory.unknown, "");
  point.serving.reset();
  EXPECT_EQ(serving_memory(point), std::nullopt);
}

struct PublicLimit {
  std::int64_t ep_size = 0, tokens = 0, sequences = 0;
};

std::vector<PublicLimit> public_limits() {
  std::istringstream lines(
      read_text_file(EPSWEEP_SOURCE_DIR "/tests/data/kv_limits_qwen3_coder_480b.csv"));
  std::vector<PublicLimit> limits;
  std::string line;
  std::getline(lines, line);  // the source
  std::getline(lines, line);  // the columns
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::int64_t ep_size = 0, input = 0, output = 0, sequences = 0;
    char comma = 0;
    fields >> ep_size >> comma >> input >> comma >> output >> comma >> sequences;
    limits.push_back({.ep_size = ep_size, .tokens = input + output, .sequences = sequences});
  }
  return limits;
}

// A third-party sweep of Qwen3-Coder-480B FP8 lists the largest admitted concurrency at EP8 to
// EP64. From EP16's pool, what the experts free on a rank predicts EP32 and EP64: within 2 %. EP8
// ran with another memory fraction.
TEST(ServingMemory, PublicKvLimitsFollowFromTheExpertsWeights) {
  const ModelShape model = shipped("qwen3-coder-480b-a35b");
  const KvCost kv = kv_cost(model.attention, KvDType::bf16);
  const auto experts = [&model](std::int64_t ep_size) {
    return serving_expert_bytes(model, (model.num_experts + ep_size - 1) / ep_size, "fp8");
  };
  EXPECT_EQ(experts(1), 468'084'326'400);
  int num_predicted = 0;
  for (const PublicLimit& from : public_limits()) {
    if (from.ep_size != 16) continue;
    const std::int64_t of_sequence = kv_bytes_of_sequence(kv, from.tokens);
    const std::int64_t pool = from.sequences * of_sequence / 16;
    for (const PublicLimit& to : public_limits()) {
      if (to.tokens != from.tokens || to.ep_size <= 16) continue;
      const std::int64_t predicted_pool = pool + experts(16) - experts(to.ep_size);
      const double listed_pool =
          static_cast<double>(to.sequences * of_sequence) / static_cast<double>(to.ep_size);
      EXPECT_NEAR(static_cast<double>(predicted_pool) / listed_pool, 1, 0.02);
      const std::int64_t sequences = pooled_sequences(to.ep_size, predicted_pool, of_sequence);
      EXPECT_NEAR(static_cast<double>(sequences) / static_cast<double>(to.sequences), 1, 0.02);
      // The same as a constant: pool(P) + all experts / P.
      const double sum_16 = static_cast<double>(pool) + 468.084e9 / 16;
      const double sum_to = listed_pool + 468.084e9 / static_cast<double>(to.ep_size);
      EXPECT_NEAR(sum_to / sum_16, 1, 0.02);
      ++num_predicted;
    }
  }
  EXPECT_EQ(num_predicted, 8);
}

}  // namespace
}  // namespace epsweep
