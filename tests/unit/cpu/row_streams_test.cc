// What is written past the caches is what would be written into them, bit for bit, at any address
// and size.
#include "cpu/row_streams.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/random.h"
#include "cpu/vector_math.h"

namespace epsweep {
namespace {

constexpr std::uint8_t kUntouched = 0xee;

// Bytes of which those at `at`, `at + 1`, ... are written; the rest must stay.
struct Target {
  Target(std::size_t at, std::size_t count) : begin(at), bytes(at + count + 64, kUntouched) {}
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data() + begin);
  }
  bool rest_is_untouched(std::size_t count) const {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if ((i < begin || i >= begin + count) && bytes[i] != kUntouched) return false;
    }
    return true;
  }
  std::size_t begin;
  std::vector<std::uint8_t> bytes;
};

std::vector<std::uint16_t> random_bf16(std::size_t count, std::uint64_t key) {
  const RandomStream random(3, Stream::test, key);
  std::vector<std::uint16_t> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(bf16_of_float(static_cast<float>(24 * random.uniform(i) - 12)));
  }
  return values;
}

TEST(RowStreams, CopyAnySizeToAnyAddress) {
  const std::vector<std::uint16_t> source = random_bf16(2500, 1);
  const auto* from = reinterpret_cast<const char*>(source.data());
  for (const std::size_t offset : {0U, 2U, 16U, 24U}) {
    for (const std::size_t count : {0U, 1U, 63U, 64U, 65U, 200U, 4096U, 4111U}) {
      for (const std::size_t shift : {0U, 6U}) {
        Target target(offset, count);
        stream_row(from + shift, from, target.data<char>(), static_cast<std::int64_t>(count));
        stream_fence();
        EXPECT_EQ(std::memcmp(target.data<char>(), from + shift, count), 0) << count;
        EXPECT_TRUE(target.rest_is_untouched(count)) << count << " at " << offset;
      }
    }
  }
}

TEST(RowStreams, SwigluIsThatOfTheCaches) {
  const std::vector<std::uint16_t> gate = random_bf16(2000, 2), up = random_bf16(2000, 3);
  for (const std::size_t offset : {0U, 2U, 16U}) {
    for (const std::size_t cols : {1U, 31U, 32U, 33U, 1024U, 1999U}) {
      std::vector<std::uint16_t> expected(cols);
      const BusyRow gates = {gate.data(), gate.data()}, ups = {up.data(), up.data()};
      const auto count = static_cast<std::int64_t>(cols);
      swiglu_row(gates, ups, count, expected.data());
      Target target(offset, 2 * cols);
      stream_swiglu_row(gates, ups, count, target.data<std::uint16_t>());
      stream_fence();
      EXPECT_EQ(std::memcmp(target.data<char>(), expected.data(), 2 * cols), 0) << cols;
      EXPECT_TRUE(target.rest_is_untouched(2 * cols)) << cols << " at " << offset;
    }
  }
}

template <typename Element>
void check_sums(const std::vector<Element>& in) {
  const std::vector<std::int32_t> rows = {2, 0, 3};
  const std::vector<float> weights = {0.3F, -1.7F, 0.01F};
  for (const std::size_t cols : {1U, 31U, 32U, 95U, 512U}) {
    for (const std::size_t num_rows : {0U, 1U, 3U}) {
      for (const float* weight : {weights.data(), static_cast<const float*>(nullptr)}) {
        const RowSum<Element> sum = {.in = in.data(),
                                     .stride = static_cast<std::int64_t>(cols),
                                     .rows = std::span(rows).first(num_rows),
                                     .weights = weight,
                                     .ahead = in.data(),
                                     .ahead_rows = rows};
        const auto count = static_cast<std::int64_t>(cols);
        std::vector<float> expected(cols);
        sum_rows(sum, count, expected.data());
        if (num_rows == 0) {
          EXPECT_EQ(expected, std::vector<float>(cols));
        }
        for (const std::size_t offset : {0U, 4U, 16U}) {
          Target target(offset, 4 * cols);
          stream_sum_rows(sum, count, target.data<float>());
          stream_fence();
          EXPECT_EQ(std::memcmp(target.data<char>(), expected.data(), 4 * cols), 0) << cols;
          EXPECT_TRUE(target.rest_is_untouched(4 * cols)) << cols << " at " << offset;
        }
      }
    }
  }
}

TEST(RowStreams, SumsAreThoseOfTheCaches) {
  const std::vector<std::uint16_t> narrow = random_bf16(4 * 512, 4);
  std::vector<float> wide;
  for (const std::uint16_t value : narrow) wide.push_back(float_of_bf16(value) * 1.37F);
  check_sums(narrow);
  check_sums(wide);
}

// Even and odd columns are computed apart: 1.5 * 3 + 2 * 5 and so on, by hand.
TEST(RowStreams, SumsKeepTheOrderOfColumns) {
  std::vector<std::uint16_t> in(2 * 40);
  for (std::size_t c = 0; c < 40; ++c) {
    in[c] = bf16_of_float(static_cast<float>(c));
    in[40 + c] = bf16_of_float(static_cast<float>(2 * c + 1));
  }
  const std::vector<std::int32_t> rows = {1, 0};
  const std::vector<float> weights = {1.5F, 2.0F};
  std::vector<float> out(40);
  sum_rows(
      RowSum<std::uint16_t>{.in = in.data(), .stride = 40, .rows = rows, .weights = weights.data()},
      40, out.data());
  for (std::size_t c = 0; c < 40; ++c) {
    EXPECT_EQ(out[c], 1.5F * static_cast<float>(2 * c + 1) + 2.0F * static_cast<float>(c)) << c;
  }
}

TEST(CoarseSigmoid, AccurateToBf16AndClamped) {
  for (double x = -86; x < 87; x += 0.0137) {
    const auto f = static_cast<float>(x);
    const double exact = 1 / (1 + std::exp(-static_cast<double>(f)));
    ASSERT_NEAR(static_cast<double>(coarse_sigmoid(f)), exact, 8e-6 * exact) << f;
  }
  EXPECT_NEAR(coarse_sigmoid(1000.0F), 1.0F, 5e-6F);
  EXPECT_LT(coarse_sigmoid(-1000.0F), 1e-37F);
  EXPECT_GT(coarse_sigmoid(-1000.0F), 0.0F);
  EXPECT_NEAR(coarse_sigmoid(std::numeric_limits<float>::infinity()), 1.0F, 5e-6F);
}

}  // namespace
}  // namespace epsweep
