// What the oracle takes for the operands of fp8 products, by hand.
#include "pipeline/quantised.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/float8.h"
#include "base/fp8_scales.h"

namespace epsweep {
namespace {

std::vector<float> inputs(DType dtype, std::vector<float> row) {
  quantise_inputs(dtype, row);
  return row;
}

// e4m3 has 8, 9, ... 15 times powers of two: 17 lies between 16 and 18, 19 between 18 and 20; ties
// go to the even one of 8, 9, 10. Scale 1/2 changes none of that.
TEST(QuantisedInputs, one_scale) {
  EXPECT_EQ(inputs(DType::fp8, {1.0F, 17.0F / 16, 19.0F / 16, -1.99F, 1e-5F}),
            (std::vector<float>{1.0F, 1.0F, 1.25F, -2.0F, 0.0F}));
  EXPECT_EQ(inputs(DType::fp8, {224.0F, 300.0F}), (std::vector<float>{224.0F, 224.0F}));
}

// The largest of each 128 becomes 448 of its scale; what is far smaller has the same relative
// spacing down to 2^-6 of it.
TEST(QuantisedInputs, scales_of_128) {
  std::vector<float> row(130, 0.0F);
  row[0] = 44.8F;
  row[1] = 1.0F;  // 10 of a scale of 0.1
  row[128] = 448.0F;
  row[129] = 17.0F;
  row = inputs(DType::fp8_block128, row);
  EXPECT_FLOAT_EQ(row[0], 44.8F);
  EXPECT_FLOAT_EQ(row[1], 1.0F);
  EXPECT_EQ(row[2], 0.0F);
  EXPECT_EQ(row[128], 448.0F);
  EXPECT_EQ(row[129], 16.0F);
}

TEST(QuantisedInputs, other_dtypes_keep_their_rows) {
  EXPECT_EQ(inputs(DType::bf16, {17.0F / 16}), std::vector<float>{17.0F / 16});
  EXPECT_EQ(inputs(DType::fp32, {17.0F / 16}), std::vector<float>{17.0F / 16});
}

PayloadMatrix matrix(std::int64_t cols) {
  return {RandomStream(3, Stream::test), cols, 0.5};
}

std::vector<std::vector<float>> rows_of(DType dtype, std::int64_t rows, std::int64_t cols) {
  WeightRows weights(dtype, matrix(cols), rows);
  std::vector<std::vector<float>> result;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto next = weights.next();
    result.emplace_back(next.begin(), next.end());
  }
  return result;
}

TEST(QuantisedWeights, bf16_are_the_payload) {
  const auto rows = rows_of(DType::bf16, 2, 48);
  std::vector<float> second(48);
  matrix(48).fill_row(1, std::span(second));
  EXPECT_EQ(rows[1], second);
}

// Odd numbers up to 15 have four bits, up to 255 they are rounded to four.
TEST(QuantisedWeights, one_scale_rounds_odd_numbers) {
  const auto exact = rows_of(DType::bf16, 40, 48), got = rows_of(DType::fp8, 40, 48);
  const float unit = matrix(48).stream().unit;
  int kept = 0;
  for (std::size_t row = 0; row < 40; ++row) {
    for (std::size_t col = 0; col < 48; ++col) {
      const float number = exact[row][col] / unit;
      EXPECT_EQ(got[row][col], float_of_e4m3(e4m3_of_float(number)) * unit);
      EXPECT_LE(std::abs(got[row][col] / unit - number), std::abs(number) / 16);
      kept += std::abs(number) < 16 && got[row][col] == exact[row][col] ? 1 : 0;
    }
  }
  EXPECT_GT(kept, 50);
}

// 130 rows of 144: four blocks, three of them cut off; each has its own largest value.
TEST(QuantisedWeights, scales_of_128_in_both_directions) {
  const auto exact = rows_of(DType::bf16, 130, 144), got = rows_of(DType::fp8_block128, 130, 144);
  for (const std::size_t top : {0U, 128U}) {
    for (const std::size_t left : {0U, 128U}) {
      const std::size_t bottom = std::min<std::size_t>(130, top + 128),
                        right = std::min<std::size_t>(144, left + 128);
      float largest = 0;
      for (std::size_t row = top; row < bottom; ++row) {
        for (std::size_t col = left; col < right; ++col) {
          largest = std::max(largest, std::abs(exact[row][col]));
        }
      }
      const float scale = largest / 448;
      for (std::size_t row = top; row < bottom; ++row) {
        for (std::size_t col = left; col < right; ++col) {
          ASSERT_EQ(got[row][col], float_of_e4m3(e4m3_of_float(exact[row][col] / scale)) * scale)
              << row << " " << col;
        }
      }
    }
  }
}

}  // namespace
}  // namespace epsweep
