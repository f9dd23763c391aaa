#include "costs/memory.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

SweepPoint small_point() {
  SweepPoint point;
  point.model.num_experts = 9;
  point.model.top_k = 2;
  point.model.hidden_dim = 32;
  point.model.expert_io_dim = 16;
  point.model.ffn_dim = 8;
  point.ep_size = 4;
  point.layers = 2;
  point.concurrency.tokens = 99;  // 25 on three ranks
  return point;
}

TEST(Memory, largest_rank_by_hand) {
  const SweepPoint point = small_point();
  const MemoryNeed need = memory_need(point, 3, 60);
  // 3 experts of 3 * 8 * 16 parameters and a bf16 each and a 9 x 32 fp32 gate, two layers.
  EXPECT_EQ(need.weight_bytes, 2 * (3 * 384 * 2 + 9 * 32 * 4));
  // 25 tokens of 32; 2 * 50 rows of 16 sent and returned, an id and a weight each; 60 rows of 4 *
  // 16 and 16 + 8, all bf16; 25 fp32 rows of 16.
  EXPECT_EQ(need.activation_bytes, 25 * 64 + 100 * (32 + 4) + 60 * (128 + 48) + 25 * 64);
  EXPECT_EQ(need.total(), need.weight_bytes + need.activation_bytes);
}

TEST(Memory, fp32_and_two_gemms) {
  SweepPoint point = small_point();
  point.dtype = DType::fp32;
  point.model.gemms_per_expert = 2;
  const MemoryNeed need = memory_need(point, 3, 60);
  EXPECT_EQ(need.weight_bytes, 2 * (3 * 256 * 4 + 9 * 32 * 4));
  EXPECT_EQ(need.activation_bytes, 25 * 128 + 100 * (64 + 4) + 60 * (256 + 64) + 25 * 64);
}

// Weights of a byte each and their scales; rows stay bf16. 16 x 16 and 16 x 8 weights are one block
// each, with a row of four scales.
TEST(Memory, fp8_weights_and_bf16_rows) {
  SweepPoint point = small_point();
  point.dtype = DType::fp8;
  const MemoryNeed need = memory_need(point, 3, 60);
  EXPECT_EQ(need.weight_bytes, 2 * (3 * (384 + 8) + 9 * 32 * 4));
  EXPECT_EQ(need.activation_bytes, memory_need(small_point(), 3, 60).activation_bytes);
  point.dtype = DType::fp8_block128;
  EXPECT_EQ(memory_need(point, 3, 60).weight_bytes, 2 * (3 * (384 + 4 * (4 + 4)) + 9 * 32 * 4));
}

// S = 40 copies sent, V = 45 received, 60 rows; rows of 16 bf16 are 32 bytes, and so are granules.
TEST(Memory, exchange_unit_rank_by_hand) {
  SweepPoint point = small_point();
  point.exchange_unit = ExchangeUnit::rank;
  const MemoryNeed need = memory_need(point, 3, 60, {.sent = 40, .received = 45});
  // tokens, ids and weights; copies out and back, uses of 50 assignments and four paddings, twice;
  // 45 copies in and back, 60 repeated and computed; their uses twice, their weights; 16 + 8
  // inner columns; fp32 sums.
  EXPECT_EQ(need.activation_bytes, 25 * 64 + 100 * 4 + 2 * 40 * 32 + 2 * (50 * 8 + 4 * 32) +
                                       2 * (45 + 60) * 32 + 2 * (60 * 8 + 4 * 32) + 60 * 4 +
                                       60 * 48 + 25 * 64);
  EXPECT_EQ(need.weight_bytes, memory_need(small_point(), 3, 60).weight_bytes);
}

// Sections of 7 rows for each of 4 ranks stand in for 50 rows sent and 60 received.
TEST(Memory, fixed_capacity_by_hand) {
  const MemoryNeed need = memory_need(small_point(), 3, 60, {}, 7);
  EXPECT_EQ(need.activation_bytes,
            25 * 64 + 100 * 4 + 4 * 28 * 32 + 2 * 60 * 32 + 60 * 48 + 25 * 64);
}

// What transport local_copy keeps of each of 2 layers in 3 steps: 4 * (3 + 1) counts; 60 rows
// received and 50 that came back, of 32 bytes each.
TEST(Memory, local_copies_by_hand) {
  SweepPoint point = small_point();
  point.vary_routing = 3;
  const std::int64_t moved = memory_need(point, 3, 60).activation_bytes;
  point.transport = "local_copy";
  EXPECT_EQ(memory_need(point, 3, 60).activation_bytes - moved, 6 * (16 * 8 + 60 * 32 + 50 * 32));
}

// The same of 45 copies received with 60 uses, of 8 bytes and four paddings of 32, and 40 sent.
TEST(Memory, local_copies_of_unit_rank_by_hand) {
  SweepPoint point = small_point();
  point.exchange_unit = ExchangeUnit::rank;
  const MaxCopies copies{.sent = 40, .received = 45};
  const std::int64_t moved = memory_need(point, 3, 60, copies).activation_bytes;
  point.transport = "local_copy";
  EXPECT_EQ(memory_need(point, 3, 60, copies).activation_bytes - moved,
            2 * (16 * 8 + (45 + 40) * 32 + 60 * 8 + 4 * 32));
}

TEST(Memory, sizes_in_the_unit_they_have) {
  EXPECT_EQ(size_text(36'842'766'336), "34.31 GiB");
  EXPECT_EQ(size_text(3 << 20), "3.0 MiB");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
}

TEST(Memory, shortfall_names_need_room_and_difference) {
  MemoryNeed need;
  need.weight_bytes = std::int64_t{12} << 30;
  need.activation_bytes = (std::int64_t{3} << 30) / 10;
  EXPECT_EQ(memory_shortfall(need, std::int64_t{8} << 30),
            "needs 12.3 GiB per rank, 8.0 GiB available: 4.3 GiB short");
  EXPECT_EQ(memory_shortfall({3 << 20, 0}, 2 << 20),
            "needs 3.0 MiB per rank, 2.0 MiB available: 1.0 MiB short");
  EXPECT_EQ(memory_shortfall({1, 1}, 2), std::nullopt);
  EXPECT_TRUE(memory_shortfall({1, 2}, 2).has_value());
}

}  // namespace
}  // namespace epsweep
