// Rows of experts in places with room for padding.
#include "cuda/kernels/expert_slots.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/int32_limits.h"
#include "cuda/slot_plan.h"
#include "device_array.h"

namespace epsweep::cuda {
namespace {

using Words = std::vector<std::uint32_t>;

// Row r is {r * 100, r * 100 + 1, ...}: four words, 16 bytes.
constexpr std::int64_t kWords = 4, kRowBytes = 16;
Words numbered_rows(std::int64_t rows) {
  Words words(static_cast<std::size_t>(rows * kWords));
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<std::uint32_t>(i / kWords * 100 + i % kWords);
  }
  return words;
}

SlotPlan plan_in_tiles(const std::vector<std::int64_t>& rows, std::int64_t tile_rows) {
  SlotPlan plan(static_cast<int>(rows.size()));
  plan.lay_out(rows, [tile_rows](std::int64_t own) { return in_tiles(own, tile_rows); });
  return plan;
}

TEST(SlotPlan, rounds_up_to_whole_tiles) {
  EXPECT_EQ(in_tiles(0, 128), 0);
  EXPECT_EQ(in_tiles(1, 128), 128);
  EXPECT_EQ(in_tiles(128, 128), 128);
  EXPECT_EQ(in_tiles(129, 128), 256);
}

TEST(SlotPlan, puts_experts_behind_each_other) {
  const SlotPlan plan = plan_in_tiles({0, 3, 0, 4, 5}, 4);
  ASSERT_EQ(plan.parts().size(), 1U);
  const ExpertSlots& part = plan.parts()[0];
  EXPECT_EQ(part.num_experts, 5);
  EXPECT_EQ(std::vector(part.begin, part.begin + 6), (std::vector{0, 0, 3, 3, 7, 12}));
  EXPECT_EQ(std::vector(part.slot, part.slot + 5), (std::vector{0, 0, 4, 4, 8}));
  EXPECT_EQ(plan.rows(), 12);
  EXPECT_EQ(plan.stored_rows(), 16);
}

// 600 experts are three launches of 256, 256 and 88; one without rows is left out.
TEST(SlotPlan, splits_many_experts_and_skips_empty_parts) {
  std::vector<std::int64_t> rows(600, 1);
  SlotPlan plan = plan_in_tiles(rows, 2);
  ASSERT_EQ(plan.parts().size(), 3U);
  EXPECT_EQ(plan.parts()[2].num_experts, 88);
  EXPECT_EQ(plan.parts()[2].first_expert, 512);
  EXPECT_EQ(plan.parts()[2].begin[0], 512);
  EXPECT_EQ(plan.parts()[2].slot[87], 2 * 599);
  for (std::size_t expert = 256; expert < 512; ++expert) rows[expert] = 0;
  plan = plan_in_tiles(rows, 2);
  ASSERT_EQ(plan.parts().size(), 2U);
  EXPECT_EQ(plan.parts()[1].first_expert, 512);
  EXPECT_EQ(plan.parts()[1].begin[0], 256);
  EXPECT_EQ(plan_in_tiles(std::vector<std::int64_t>(600, 0), 2).parts().size(), 0U);
}

TEST(SlotPlan, refuses_more_rows_than_32_bits_count) {
  const std::int64_t most = (std::int64_t{1} << 31) - 1;
  EXPECT_EQ(as_int32(most, "rows"), most);
  SlotPlan plan(2);
  EXPECT_NO_THROW(plan.lay_out(std::vector<std::int64_t>{most, 0}, [](auto own) { return own; }));
  EXPECT_THROW(plan.lay_out(std::vector<std::int64_t>{most, 1}, [](auto own) { return own; }),
               RunError);
  EXPECT_THROW(plan.lay_out(std::vector<std::int64_t>{1, 1}, [](auto) { return 3LL << 30; }),
               RunError);
  try {
    as_int32(3'000'000'000, "rows of one expert");
    FAIL();
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "rows of one expert: 3000000000 does not fit 32 bits");
  }
}

// Empty experts at both ends and in the middle; what is behind an expert's rows stays poisoned.
TEST(ExpertSlots, copies_there_and_back) {
  const std::vector<std::int64_t> rows = {0, 3, 0, 4, 1, 0};
  const SlotPlan plan = plan_in_tiles(rows, 4);
  const Words packed = numbered_rows(8);
  DeviceArray<std::uint32_t> from(packed), slots(12 * kWords), back(8 * kWords);
  TestStream stream;
  into_slots(stream, plan.parts()[0], kRowBytes, from.data(), slots.data());
  out_of_slots(stream, plan.parts()[0], kRowBytes, slots.data(), back.data());
  stream.synchronize();
  EXPECT_EQ(back.host(), packed);
  // The row that lies at each place; -1 for padding.
  const std::vector<int> row_at = {0, 1, 2, -1, 3, 4, 5, 6, 7, -1, -1, -1};
  const Words got = slots.host();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const int row = row_at[i / kWords];
    EXPECT_EQ(got[i], row < 0 ? 0xffffffffU : static_cast<std::uint32_t>(row * 100) + i % kWords);
  }
}

// Rows wider than a block, and more experts than a launch has.
TEST(ExpertSlots, copies_wide_rows_of_many_experts) {
  std::vector<std::int64_t> rows(300, 0);
  rows[2] = 2;
  rows[255] = rows[256] = 1;
  rows[299] = 3;
  const SlotPlan plan = plan_in_tiles(rows, 2);
  const std::int64_t words = 4 * 700;
  Words packed(static_cast<std::size_t>(7 * words));
  for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<std::uint32_t>(i);
  DeviceArray<std::uint32_t> from(packed), slots(plan.stored_rows() * words), back(7 * words);
  TestStream stream;
  ASSERT_EQ(plan.parts().size(), 2U);
  for (const ExpertSlots& part : plan.parts()) {
    into_slots(stream, part, words * 4, from.data(), slots.data());
  }
  for (const ExpertSlots& part : plan.parts()) {
    out_of_slots(stream, part, words * 4, slots.data(), back.data());
  }
  stream.synchronize();
  EXPECT_EQ(back.host(), packed);
  EXPECT_EQ(slots.host()[static_cast<std::size_t>(4 * words)], 3 * words);  // row 3, of expert 256
}

// Tiles of 4 rows: expert 1 has one, expert 3 two. Weights past 2^31 bytes are only pointed to.
TEST(ExpertSlots, writes_the_pointers_of_every_tile) {
  const SlotPlan plan = plan_in_tiles({0, 3, 0, 5}, 4);
  DeviceArray<std::uint32_t> from(numbered_rows(8)), tiles(12 * kWords);
  DeviceArray<void*> pointers(3 * 4);
  char* const nowhere = reinterpret_cast<char*>(std::uintptr_t{1} << 40);
  const BatchOperands batch{.pointers = pointers.data(),
                            .capacity = 4,
                            .tile_rows = 4,
                            .w = nowhere,
                            .x = tiles.data(),
                            .y = nowhere + 64,
                            .w_bytes = std::int64_t{3} << 30,
                            .x_bytes = 4 * kRowBytes,
                            .y_bytes = 32};
  TestStream stream;
  into_tiles(stream, plan.parts()[0], kRowBytes, from.data(), batch);
  stream.synchronize();
  const std::vector<void*> got = pointers.host();
  const auto weights = [&](std::int64_t expert) { return nowhere + (expert * 3 << 30); };
  EXPECT_EQ(got[0], weights(1));
  EXPECT_EQ(got[1], weights(3));
  EXPECT_EQ(got[2], weights(3));
  for (std::size_t tile = 0; tile < 3; ++tile) {
    EXPECT_EQ(got[4 + tile], tiles.data() + tile * 4 * kWords);
    EXPECT_EQ(got[8 + tile], nowhere + 64 + tile * 32);
    EXPECT_EQ(got[4 * tile + 3], reinterpret_cast<void*>(~std::uintptr_t{0}));
  }
  EXPECT_EQ(tiles.host()[8 * kWords], 700U);  // the fifth row of expert 3 is row 7
}

}  // namespace
}  // namespace epsweep::cuda
