#include "costs/ffn_table.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

using Rows = std::vector<std::int64_t>;

// 20 us + 10 us for each of n slots up to 32 rows, 16 at 64 and 40 at 256 rows.
std::vector<FfnSample> table_of(const std::vector<std::int64_t>& slots) {
  std::vector<FfnSample> samples;
  for (const std::int64_t n : slots) {
    const auto all = static_cast<double>(n);
    samples.push_back({n, 8, (20 + 10 * all) * 1e-6});
    samples.push_back({n, 32, (20 + 10 * all) * 1e-6});
    samples.push_back({n, 64, (20 + 16 * all) * 1e-6});
    samples.push_back({n, 256, (20 + 40 * all) * 1e-6});
  }
  return samples;
}

double us(const FfnTable& table, const Rows& rows) {
  return table.forecast(rows)->time.seconds * 1e6;
}

TEST(FfnTable, KnowsTheFixedPart) {
  EXPECT_NEAR(FfnTable(table_of({4, 8})).fixed_s(), 20e-6, 1e-12);
  EXPECT_EQ(FfnTable(table_of({4})).fixed_s(), 0);
}

// As of a load per rank, where wider EP means more rows of fewer slots: 32 and 128 rows of four
// slots, 64 and 256 of two. Four slots at 64 rows lie between: 20 + 4 * 12 us.
TEST(FfnTable, FindsTheFixedPartBetweenMeasuredRows) {
  const FfnTable table(
      std::vector<FfnSample>{{4, 32, 60e-6}, {4, 128, 84e-6}, {2, 64, 44e-6}, {2, 256, 68e-6}});
  // At 64 rows t(4) = 68, at 128 rows t(2) = 52: both leave 20 us at no slots.
  EXPECT_NEAR(table.fixed_s(), 20e-6, 1e-10);
}

TEST(FfnTable, MeasuredPointsComeOutAsMeasured) {
  const FfnTable table(table_of({4, 8}));
  EXPECT_NEAR(us(table, Rows(4, 8)), 60, 1e-6);
  EXPECT_NEAR(us(table, Rows(8, 256)), 340, 1e-6);
  EXPECT_EQ(table.forecast(Rows(4, 64))->basis, FfnBasis::interpolated);
  EXPECT_EQ(table.forecast(Rows(4, 64))->time.low_s, table.forecast(Rows(4, 64))->time.high_s);
}

// 48 rows are half way from 32 to 64: 13 us a slot; 6 slots between 4 and 8.
TEST(FfnTable, InterpolatesRowsAndSlots) {
  const FfnTable table(table_of({4, 8}));
  EXPECT_NEAR(us(table, Rows(4, 48)), 20 + 4 * 13, 1e-6);
  EXPECT_NEAR(us(table, Rows(6, 48)), 20 + 6 * 13, 1e-6);
}

// One hot expert: 20 + 10 + 10 + 40 us; the slot without rows takes nothing.
TEST(FfnTable, SlotsOfOneRankAddUp) {
  EXPECT_NEAR(us(FfnTable(table_of({2, 4})), {8, 0, 32, 256}), 80, 1e-6);
  EXPECT_EQ(us(FfnTable(table_of({2, 4})), {0, 0}), 0);
}

// A row takes 0.1 us at the peak and the weights of a slot 8 us, so 256 rows (25.6 us) run at 64 %
// of it, and so do 512: 80 us. Without a floor 512 rows take twice as long as well.
TEST(FfnTable, MoreRowsHoldTheLastUtilisation) {
  const FfnFloor floor = {.row_s = 0.1e-6, .slot_s = 8e-6};
  EXPECT_NEAR(us(FfnTable(table_of({2, 4}), floor), Rows(2, 512)), 20 + 2 * 80, 1e-6);
  EXPECT_NEAR(us(FfnTable(table_of({2, 4})), Rows(2, 512)), 20 + 2 * 80, 1e-6);
  // While the floor is the weights', more rows cost nothing more: 40 us at 256 and at 512 rows.
  const FfnFloor wide = {.row_s = 0.01e-6, .slot_s = 8e-6};
  const auto forecast = FfnTable(table_of({2, 4}), wide).forecast(Rows(2, 512));
  EXPECT_NEAR(forecast->time.seconds * 1e6, 20 + 2 * 40, 1e-6);
  EXPECT_EQ(forecast->basis, FfnBasis::more_rows);
  EXPECT_DOUBLE_EQ(forecast->time.doublings, 1);
  EXPECT_NEAR(forecast->time.high_s * 1e6, 100 * 1.07, 1e-6);
}

TEST(FfnTable, FewerRowsStreamTheWeightsAllTheSame) {
  const auto forecast = FfnTable(table_of({2, 4})).forecast(Rows(2, 1));
  EXPECT_NEAR(forecast->time.seconds * 1e6, 40, 1e-6);
  EXPECT_EQ(forecast->basis, FfnBasis::fewer_rows);
}

// 16 slots are two doublings from 4, 1 slot is one from 2.
TEST(FfnTable, OtherSlotsAreFixedPlusSlots) {
  const FfnTable table(table_of({2, 4}));
  const auto many = table.forecast(Rows(16, 64));
  EXPECT_NEAR(many->time.seconds * 1e6, 20 + 16 * 16, 1e-6);
  EXPECT_EQ(many->basis, FfnBasis::other_slots);
  EXPECT_DOUBLE_EQ(many->time.doublings, 2);
  EXPECT_NEAR(many->time.low_s * 1e6, 276 * 0.93 * 0.93, 1e-6);
  EXPECT_NEAR(us(table, {64}), 36, 1e-6);
  EXPECT_DOUBLE_EQ(table.forecast(Rows(1, 64))->time.doublings, 1);
}

// 16 slots were measured up to 64 rows, 4 up to 256: 256 rows are known of 4 slots only.
TEST(FfnTable, TakesTheCurveThatCoversTheRows) {
  std::vector<FfnSample> samples = table_of({4, 16});
  std::erase_if(samples, [](const auto& one) { return one.slots == 16 && one.rows_per_slot > 64; });
  const auto forecast = FfnTable(samples).forecast(Rows(16, 256));
  EXPECT_NEAR(forecast->time.seconds * 1e6, 20 + 16 * 40, 1e-6);
  EXPECT_DOUBLE_EQ(forecast->time.doublings, 2);  // from those four
}

TEST(FfnTable, NothingFollowsFromNothing) {
  EXPECT_FALSE(FfnTable({}).forecast(Rows(1, 1)));
  EXPECT_FALSE(FfnTable(std::vector<FfnSample>{{0, 8, 1e-6}, {2, 8, 0}}).forecast(Rows(1, 1)));
}

}  // namespace
}  // namespace epsweep
