#include "costs/row_bytes.h"

#include <map>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

std::map<std::string, RowBytes> by_name(std::int64_t io_dim) {
  std::map<std::string, RowBytes> rows;
  for (const RowBytes& row : row_bytes_by_dtype(io_dim)) rows[row.dtype] = row;
  return rows;
}

// 7168 = 56 * 128 = 224 * 32 = 448 * 16.
TEST(RowBytes, rows_of_deepseek_v3) {
  auto rows = by_name(7168);
  EXPECT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows["bf16"].payload, 14336);
  EXPECT_EQ(rows["bf16"].scale, 0);
  EXPECT_EQ(rows["fp32"].payload, 28672);
  EXPECT_EQ(rows["fp8"].payload, 7168);
  EXPECT_EQ(rows["fp8"].scale, 56 * 4);
  EXPECT_EQ(rows["fp8"].total(), 7392);
  EXPECT_EQ(rows["mxfp8"].scale, 224);
  EXPECT_EQ(rows["mxfp8"].total(), 7392);
  EXPECT_EQ(rows["nvfp4"].payload, 3584);
  EXPECT_EQ(rows["nvfp4"].scale, 448);
  EXPECT_EQ(rows["nvfp4"].total(), 4032);
}

TEST(RowBytes, parts_of_blocks_have_scales_too) {
  auto rows = by_name(129);
  EXPECT_EQ(rows["fp8"].scale, 2 * 4);
  EXPECT_EQ(rows["mxfp8"].scale, 5);
  EXPECT_EQ(rows["nvfp4"].payload, 65);
  EXPECT_EQ(rows["nvfp4"].scale, 9);
}

TEST(RowBytes, one_copy_for_several_experts_carries_all_choices) {
  EXPECT_EQ(metadata_bytes(CopyUnit::assignment, 8), 8);
  EXPECT_EQ(metadata_bytes(CopyUnit::distinct, 8), 64);
}

}  // namespace
}  // namespace epsweep
