#include "workload/payload.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

std::vector<float> row_of(const PayloadMatrix& matrix, std::int64_t row, std::size_t cols) {
  std::vector<float> values(cols, NAN);
  matrix.fill_row(row, std::span(values));
  return values;
}

// The definition in payload.h, one value at a time.
float by_definition(const RandomStream& stream, std::int64_t index, double amplitude) {
  const auto i = static_cast<std::uint64_t>(index);
  const auto byte = static_cast<std::int8_t>((stream.bits(i / 8) >> (8 * (i % 8))) & 0xff);
  return static_cast<float>((2 * byte + 1) * amplitude / 256);
}

double variance(const PayloadMatrix& matrix, std::int64_t rows) {
  double sum = 0, squares = 0;
  const auto cols = static_cast<std::size_t>(matrix.cols());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const float value : row_of(matrix, row, cols)) {
      sum += value;
      squares += double{value} * value;
    }
  }
  const double count = static_cast<double>(rows * matrix.cols());
  return squares / count - (sum / count) * (sum / count);
}

// Results of different versions are compared by value: these may never change.
TEST(RandomStream, golden_values) {
  const RandomStream stream(1, Stream::token);
  EXPECT_EQ(stream.bits(0), 0x46352ed0aa87a73fU);
  EXPECT_EQ(stream.bits(1), 0x988d4a5ec82a7c3U);
  EXPECT_EQ(RandomStream(7, Stream::routing, 3, 0, 12345).bits(2), 0x51e1a677f2bac699U);
  EXPECT_EQ(RandomStream(7, Stream::routing, 3, 0, 12345).below(0, 256), 249U);
  EXPECT_DOUBLE_EQ(stream.uniform(0), 0.27424900621784198);
}

TEST(RandomStream, coordinates_are_not_interchangeable) {
  std::set<std::uint64_t> first;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    for (std::uint64_t a = 0; a < 3; ++a) {
      for (std::uint64_t b = 0; b < 3; ++b) {
        for (std::uint64_t c = 0; c < 3; ++c) {
          first.insert(RandomStream(seed, Stream::test, a, b, c).bits(0));
          first.insert(RandomStream(seed, Stream::token, a, b, c).bits(0));
        }
      }
    }
  }
  EXPECT_EQ(first.size(), 2U * 81U);
}

TEST(Payload, golden_values) {
  EXPECT_EQ(row_of(token_matrix(1, 7168), 0, 4),
            (std::vector<float>{0.9921875F, -1.3828125F, -1.8828125F, -1.3359375F}));
  EXPECT_EQ(row_of(token_matrix(1, 7168), 100, 4),
            (std::vector<float>{0.2890625F, 1.3046875F, 0.6484375F, -1.3046875F}));
  EXPECT_EQ(row_of(gate_matrix(1, 2, 7168), 3, 2),
            (std::vector<float>{0.0100708008F, 0.0122680664F}));
  EXPECT_EQ(row_of(gate_up_matrix(1, 2, 255, 7168), 5, 2),
            (std::vector<float>{0.00408935547F, 0.00347900391F}));
  EXPECT_EQ(row_of(down_matrix(1, 2, 255, 2048), 5, 2),
            (std::vector<float>{-0.00915527344F, 0.0252685547F}));
}

TEST(Payload, any_row_start_and_length_follows_the_definition) {
  const RandomStream stream(5, Stream::test);
  for (const std::int64_t cols : {1, 3, 7, 8, 9, 63, 64, 65, 127, 200, 333}) {
    const PayloadMatrix matrix(stream, cols, 0.5);
    for (const std::int64_t row : {0, 1, 2, 5, 1'000'003}) {
      for (const std::int64_t length : {cols, cols / 2, std::int64_t{0}}) {
        const std::vector<float> values = row_of(matrix, row, static_cast<std::size_t>(length));
        for (std::int64_t col = 0; col < length; ++col) {
          ASSERT_EQ(values[static_cast<std::size_t>(col)],
                    by_definition(stream, row * cols + col, 0.5))
              << "row " << row << " of " << cols << ", column " << col;
        }
      }
    }
  }
}

TEST(Payload, bf16_holds_the_same_values) {
  const PayloadMatrix matrix = gate_up_matrix(3, 1, 17, 333);
  std::vector<std::uint16_t> bits(333);
  for (const std::int64_t row : {0, 1, 7, 250}) {
    matrix.fill_row(row, std::span(bits));
    const std::vector<float> values = row_of(matrix, row, bits.size());
    for (std::size_t col = 0; col < bits.size(); ++col) {
      ASSERT_EQ(std::bit_cast<float>(static_cast<std::uint32_t>(bits[col]) << 16), values[col]);
    }
  }
}

TEST(Payload, values_are_never_zero_and_fill_their_range) {
  std::set<float> seen;
  for (std::int64_t row = 0; row < 20; ++row) {
    for (const float value : row_of(token_matrix(9, 1024), row, 1024)) {
      ASSERT_NE(value, 0.0F);
      ASSERT_LT(std::fabs(value), 2.0F);
      seen.insert(value);
    }
  }
  EXPECT_EQ(seen.size(), 256U);
}

TEST(Payload, matrices_differ_by_every_coordinate) {
  const std::vector<float> base = row_of(gate_up_matrix(1, 2, 3, 64), 0, 64);
  EXPECT_NE(base, row_of(gate_up_matrix(2, 2, 3, 64), 0, 64));
  EXPECT_NE(base, row_of(gate_up_matrix(1, 3, 3, 64), 0, 64));
  EXPECT_NE(base, row_of(gate_up_matrix(1, 2, 4, 64), 0, 64));
  EXPECT_NE(base, row_of(gate_up_matrix(1, 2, 3, 64), 1, 64));
  EXPECT_NE(base, row_of(down_matrix(1, 2, 3, 64), 0, 64));
}

TEST(Payload, scales_keep_activations_near_one) {
  EXPECT_NEAR(variance(token_matrix(4, 512), 200), 4.0 / 3, 0.02);
  EXPECT_EQ(weight_amplitude(3), 1.0);
  EXPECT_EQ(weight_amplitude(4), 0.5);
  EXPECT_EQ(weight_amplitude(12), 0.5);
  EXPECT_EQ(weight_amplitude(7168), 1.0 / 64);
  EXPECT_EQ(weight_amplitude(2048), 1.0 / 32);
  for (const std::int64_t hidden_dim : {64, 2048, 7168}) {
    const double logit_variance =
        static_cast<double>(hidden_dim) * 4 / 3 * variance(gate_matrix(4, 0, hidden_dim), 64);
    EXPECT_GT(logit_variance, 0.32) << hidden_dim;
    EXPECT_LT(logit_variance, 1.36) << hidden_dim;
  }
}

}  // namespace
}  // namespace epsweep
