// Kernels that move and combine rows, against plain loops.
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/random.h"
#include "cuda/kernels/payload.h"
#include "cuda/kernels/rows.h"
#include "device_array.h"
#include "workload/payload.h"

namespace epsweep::cuda {
namespace {

std::vector<std::int32_t> shuffled(std::int64_t count) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const RandomStream random(5, epsweep::Stream::test, 1);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  return order;
}

std::vector<unsigned char> random_bytes(std::int64_t count) {
  const RandomStream random(7, epsweep::Stream::test, 2);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(random.bits(i));
  return bytes;
}

std::vector<float> random_floats(std::int64_t count, std::uint64_t key) {
  const RandomStream random(9, epsweep::Stream::test, key);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(8 * random.uniform(i) - 4);
  }
  return values;
}

std::vector<std::uint16_t> as_bf16(const std::vector<float>& values) {
  std::vector<std::uint16_t> half;
  for (const float value : values) half.push_back(bf16_of_float(value));
  return half;
}

struct CopyCase {
  std::int64_t rows, row_bytes, stride_bytes;
  int repeat;
};

class CopyRows : public testing::TestWithParam<CopyCase> {};

TEST_P(CopyRows, scatter_puts_every_row_where_it_belongs) {
  const auto [rows, row_bytes, stride, repeat] = GetParam();
  const std::vector<unsigned char> in = random_bytes((rows + repeat - 1) / repeat * stride);
  const std::vector<std::int32_t> position = shuffled(rows);
  TestStream stream;
  DeviceArray<unsigned char> device_in(in), out(rows * row_bytes);
  DeviceArray<std::int32_t> device_position(position);
  scatter_rows(stream, device_in.data(), stride, repeat, device_position.data(), rows, row_bytes,
               out.data());
  stream.synchronize();
  std::vector<unsigned char> want(static_cast<std::size_t>(rows * row_bytes));
  for (std::int64_t i = 0; i < rows; ++i) {
    std::memcpy(want.data() + position[static_cast<std::size_t>(i)] * row_bytes,
                in.data() + i / repeat * stride, static_cast<std::size_t>(row_bytes));
  }
  EXPECT_EQ(out.host(), want);
}

TEST_P(CopyRows, gather_fetches_every_row) {
  const auto [rows, row_bytes, stride, repeat] = GetParam();
  const std::vector<unsigned char> in = random_bytes(rows * stride);
  const std::vector<std::int32_t> source = shuffled(rows);
  TestStream stream;
  DeviceArray<unsigned char> device_in(in), out(rows * row_bytes);
  DeviceArray<std::int32_t> device_source(source);
  gather_rows(stream, device_in.data(), stride, device_source.data(), rows, row_bytes, out.data());
  stream.synchronize();
  std::vector<unsigned char> want(static_cast<std::size_t>(rows * row_bytes));
  for (std::int64_t i = 0; i < rows; ++i) {
    std::memcpy(want.data() + i * row_bytes,
                in.data() + source[static_cast<std::size_t>(i)] * stride,
                static_cast<std::size_t>(row_bytes));
  }
  EXPECT_EQ(out.host(), want);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CopyRows,
                         testing::Values(CopyCase{0, 16, 16, 1}, CopyCase{1, 2, 2, 1},
                                         CopyCase{33, 6, 10, 3}, CopyCase{64, 128, 256, 8},
                                         CopyCase{17, 16, 16, 2}, CopyCase{5, 4096 + 16, 8192, 1},
                                         CopyCase{9, 130, 130, 2}, CopyCase{300, 48, 48, 4}));

struct ReduceCase {
  std::int64_t tokens, cols;
  int top_k;
};

class WeightedReduce : public testing::TestWithParam<ReduceCase> {};

TEST_P(WeightedReduce, adds_in_order_of_choice) {
  const auto [tokens, cols, top_k] = GetParam();
  const std::int64_t rows = tokens * top_k;
  const std::vector<float> in = random_floats(rows * cols, 3), weights = random_floats(rows, 4);
  const std::vector<std::uint16_t> half = as_bf16(in);
  const std::vector<std::int32_t> position = shuffled(rows);
  TestStream stream;
  DeviceArray<float> device_in(in), device_weights(weights), out(tokens * cols),
      half_out(tokens * cols);
  DeviceArray<std::uint16_t> device_half(half);
  DeviceArray<std::int32_t> device_position(position);
  weighted_reduce(stream, ElementType::fp32, top_k, device_position.data(), device_weights.data(),
                  tokens, cols, device_in.data(), out.data());
  weighted_reduce(stream, ElementType::bf16, top_k, device_position.data(), device_weights.data(),
                  tokens, cols, device_half.data(), half_out.data());
  stream.synchronize();
  std::vector<float> want(static_cast<std::size_t>(tokens * cols)), half_want = want;
  for (std::size_t t = 0; t < static_cast<std::size_t>(tokens); ++t) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(cols); ++c) {
      for (std::size_t j = 0; j < static_cast<std::size_t>(top_k); ++j) {
        const std::size_t a = t * static_cast<std::size_t>(top_k) + j;
        const std::size_t from =
            static_cast<std::size_t>(position[a]) * static_cast<std::size_t>(cols) + c;
        float& sum = want[t * static_cast<std::size_t>(cols) + c];
        float& half_sum = half_want[t * static_cast<std::size_t>(cols) + c];
        sum = std::fmaf(weights[a], in[from], sum);
        half_sum = std::fmaf(weights[a], float_of_bf16(half[from]), half_sum);
      }
    }
  }
  EXPECT_EQ(out.host(), want);
  EXPECT_EQ(half_out.host(), half_want);
}

INSTANTIATE_TEST_SUITE_P(Shapes, WeightedReduce,
                         testing::Values(ReduceCase{0, 8, 2}, ReduceCase{1, 1, 1},
                                         ReduceCase{7, 13, 3}, ReduceCase{5, 2048, 8},
                                         ReduceCase{3, 1100, 2}));

TEST(SegmentReduce, adds_each_segments_rows_in_order) {
  const std::vector<std::int32_t> first = {0, 2, 2, 5, 6}, row = {3, 0, 1, 3, 2, 0};
  for (const std::int64_t cols : {1, 24, 300}) {
    const std::vector<float> in = random_floats(4 * cols, 6), weights = random_floats(6, 7);
    const std::vector<std::uint16_t> half = as_bf16(in);
    TestStream stream;
    DeviceArray<std::int32_t> device_first(first), device_row(row);
    DeviceArray<float> device_in(in), device_weights(weights), plain(4 * cols);
    DeviceArray<std::uint16_t> device_half(half), half_out(4 * cols);
    segment_reduce(stream, {.in_type = ElementType::fp32,
                            .segments = 4,
                            .cols = cols,
                            .first = device_first.data(),
                            .row = device_row.data(),
                            .in = device_in.data(),
                            .out = plain.data()});
    segment_reduce(stream, {.in_type = ElementType::bf16,
                            .out_type = ElementType::bf16,
                            .segments = 4,
                            .cols = cols,
                            .first = device_first.data(),
                            .row = device_row.data(),
                            .weights = device_weights.data(),
                            .in = device_half.data(),
                            .out = half_out.data()});
    stream.synchronize();
    std::vector<float> want;
    std::vector<std::uint16_t> half_want;
    for (std::size_t s = 0; s < 4; ++s) {
      for (std::size_t c = 0; c < static_cast<std::size_t>(cols); ++c) {
        float sum = 0, half_sum = 0;
        for (auto i = static_cast<std::size_t>(first[s]);
             i < static_cast<std::size_t>(first[s + 1]); ++i) {
          const std::size_t from =
              static_cast<std::size_t>(row[i]) * static_cast<std::size_t>(cols) + c;
          sum += in[from];
          half_sum = std::fmaf(weights[i], float_of_bf16(half[from]), half_sum);
        }
        want.push_back(sum);
        half_want.push_back(bf16_of_float(half_sum));
      }
    }
    EXPECT_EQ(plain.host(), want);
    EXPECT_EQ(half_out.host(), half_want);
  }
}

class Activations : public testing::TestWithParam<std::int64_t> {};

TEST_P(Activations, follow_their_formulas) {
  const std::int64_t rows = 3, cols = GetParam();
  const std::vector<float> in = random_floats(rows * 2 * cols, 5);
  const std::vector<std::uint16_t> half = as_bf16(in);
  TestStream stream;
  DeviceArray<float> device_in(in), gated(rows * cols), squared(rows * 2 * cols);
  DeviceArray<std::uint16_t> device_half(half), half_gated(rows * cols);
  swiglu(stream, ElementType::fp32, rows, cols, device_in.data(), gated.data());
  swiglu(stream, ElementType::bf16, rows, cols, device_half.data(), half_gated.data());
  squared_relu(stream, ElementType::fp32, rows, 2 * cols, device_in.data(), squared.data());
  stream.synchronize();
  const std::vector<float> got = gated.host(), got_squared = squared.host();
  const std::vector<std::uint16_t> got_half = half_gated.host();
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto gate_at = static_cast<std::size_t>(i / cols * 2 * cols + i % cols);
    const auto up_at = gate_at + static_cast<std::size_t>(cols);
    const double want = silu(in[gate_at]) * in[up_at];
    EXPECT_NEAR(got[at], want, 1e-6 * (1 + std::abs(want)));
    const double half_want =
        silu(float_of_bf16(half[gate_at])) * static_cast<double>(float_of_bf16(half[up_at]));
    EXPECT_NEAR(float_of_bf16(got_half[at]), half_want, std::abs(half_want) / 256 + 1e-6);
  }
  for (std::size_t i = 0; i < got_squared.size(); ++i) {
    const float positive = std::max(in[i], 0.0F);
    EXPECT_EQ(got_squared[i], positive * positive);
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, Activations, testing::Values(1, 7, 64, 1000));

TEST(Activations, keep_nan) {
  TestStream stream;
  DeviceArray<float> in(std::vector<float>{NAN, 1.0F}), out(1);
  swiglu(stream, ElementType::fp32, 1, 1, in.data(), out.data());
  stream.synchronize();
  EXPECT_TRUE(std::isnan(out.host()[0]));
  squared_relu(stream, ElementType::fp32, 1, 1, in.data(), out.data());
  stream.synchronize();
  EXPECT_TRUE(std::isnan(out.host()[0]));
}

TEST(FillPayload, equals_the_host_function_bit_by_bit) {
  for (const std::int64_t cols : {1, 7, 8, 100, 1023}) {
    const PayloadMatrix matrix = token_matrix(11, cols);
    for (const std::int64_t row : {0, 1, 5}) {
      std::vector<float> want(static_cast<std::size_t>(cols));
      std::vector<std::uint16_t> half_want(static_cast<std::size_t>(cols));
      matrix.fill_row(row, std::span(want));
      matrix.fill_row(row, std::span(half_want));
      TestStream stream;
      DeviceArray<float> out(cols);
      DeviceArray<std::uint16_t> half(cols);
      const RandomStream values(11, epsweep::Stream::token);
      fill_payload(stream, values, row * cols, 2.0F / 256, cols, ElementType::fp32, out.data());
      fill_payload(stream, values, row * cols, 2.0F / 256, cols, ElementType::bf16, half.data());
      stream.synchronize();
      EXPECT_EQ(out.host(), want) << cols << " " << row;
      EXPECT_EQ(half.host(), half_want) << cols << " " << row;
    }
  }
}

}  // namespace
}  // namespace epsweep::cuda
