// e4m3 inputs and weights made on the device against the same arithmetic on the host, bit by bit.
#include "cuda/kernels/quantise.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/float8.h"
#include "base/payload_stream.h"
#include "cuda/slot_plan.h"
#include "device_array.h"
#include "twins.h"

namespace epsweep::cuda {
namespace {

constexpr std::uint8_t kUntouched = 0xff;

// bf16 numbers of all sizes up to `range`, some of them zero.
std::vector<std::uint16_t> random_rows(Draws& draws, std::int64_t count, double range) {
  std::vector<std::uint16_t> rows;
  for (const float value : draws.floats(count, range)) {
    const auto shrunk = static_cast<float>(value / static_cast<double>(1 << draws.between(0, 12)));
    rows.push_back(bf16_of_float(draws.between(0, 15) == 0 ? 0.0F : shrunk));
  }
  return rows;
}

struct Quantised {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
  bool operator==(const Quantised&) const = default;
};

// Inputs of experts with those rows in slots of `room` rows each, on the host.
struct Inputs {
  std::vector<std::int64_t> rows, room;
  std::int64_t k;
  std::vector<std::uint16_t> values;

  std::int64_t slots() const { return std::accumulate(room.begin(), room.end(), std::int64_t{0}); }
  float at(std::int64_t row, std::int64_t col) const {
    return float_of_bf16(values[static_cast<std::size_t>(row * k + col)]);
  }

  Quantised with_one_scale() const {
    Quantised result{std::vector(static_cast<std::size_t>(slots() * k), kUntouched), {}};
    for_each_row([&](std::int64_t row, std::int64_t slot, std::size_t) {
      for (std::int64_t col = 0; col < k; ++col) {
        result.codes[static_cast<std::size_t>(slot * k + col)] =
            e4m3_of_float(at(row, col) / kFp8InputScale);
      }
    });
    return result;
  }

  // Scales that no row has stay minus one.
  Quantised with_scales_of_128() const {
    Quantised result{std::vector(static_cast<std::size_t>(slots() * k), kUntouched),
                     std::vector(static_cast<std::size_t>(slots() * scale_blocks(k)), -1.0F)};
    std::int64_t first_slot = 0;
    std::size_t last = 0;
    for_each_row([&](std::int64_t row, std::int64_t slot, std::size_t expert) {
      for (; last < expert; ++last) first_slot += room[last];
      for (std::int64_t block = 0; block < scale_blocks(k); ++block) {
        const std::int64_t begin = block * 128, end = std::min(k, begin + 128);
        float largest = 0;
        for (std::int64_t col = begin; col < end; ++col) {
          largest = std::max(largest, std::abs(at(row, col)));
        }
        const float scale = largest > 0 ? largest / 448 : 1;
        result.scales[static_cast<std::size_t>(first_slot * scale_blocks(k) + block * room[expert] +
                                               slot - first_slot)] = scale;
        for (std::int64_t col = begin; col < end; ++col) {
          result.codes[static_cast<std::size_t>(slot * k + col)] =
              e4m3_of_float(at(row, col) / scale);
        }
      }
    });
    return result;
  }

  template <typename Visit>
  void for_each_row(const Visit& visit) const {
    std::int64_t row = 0, slot = 0;
    for (std::size_t expert = 0; expert < rows.size(); ++expert) {
      for (std::int64_t r = 0; r < rows[expert]; ++r) visit(row++, slot + r, expert);
      slot += room[expert];
    }
  }
};

// Experts without rows among them, more than one launch takes in some cases.
Inputs random_inputs(std::uint64_t key, std::int64_t tile) {
  Draws draws(key);
  Inputs inputs;
  inputs.k = 16 * draws.between(1, 20);
  const std::int64_t experts = draws.one_of<std::int64_t>({1, 3, 17, 300});
  for (std::int64_t e = 0; e < experts; ++e) {
    inputs.rows.push_back(draws.coin() ? draws.between(0, experts > 100 ? 2 : 9) : 0);
    inputs.room.push_back(in_tiles(inputs.rows.back(), tile));
  }
  const std::int64_t total =
      std::accumulate(inputs.rows.begin(), inputs.rows.end(), std::int64_t{0});
  inputs.values = random_rows(draws, total * inputs.k, draws.one_of<double>({1.0, 300.0, 1e-30}));
  return inputs;
}

SlotPlan plan_of(const Inputs& inputs) {
  SlotPlan plan(static_cast<int>(inputs.rows.size()));
  std::size_t next = 0;
  plan.lay_out(inputs.rows, [&](std::int64_t) { return inputs.room[next++]; });
  return plan;
}

TEST(Quantise, inputs_with_one_scale_are_the_hosts) {
  for (std::uint64_t key = 0; key < kCases; ++key) {
    const Inputs inputs = random_inputs(key, 3);
    DeviceArray<std::uint16_t> in(inputs.values);
    DeviceArray<std::uint8_t> out(inputs.slots() * inputs.k);
    TestStream stream;
    const SlotPlan plan = plan_of(inputs);
    for (const ExpertSlots& part : plan.parts()) {
      quantise_rows(stream, part, inputs.k, in.data(), out.data());
    }
    stream.synchronize();
    EXPECT_EQ(out.host(), inputs.with_one_scale().codes) << key;
  }
}

TEST(Quantise, inputs_with_scales_of_128_are_the_hosts) {
  for (std::uint64_t key = 0; key < kCases; ++key) {
    const Inputs inputs = random_inputs(key, kScaledRows);
    const Quantised want = inputs.with_scales_of_128();
    DeviceArray<std::uint16_t> in(inputs.values);
    DeviceArray<std::uint8_t> out(inputs.slots() * inputs.k);
    DeviceArray<float> scales(std::vector<float>(want.scales.size(), -1.0F));
    TestStream stream;
    const SlotPlan plan = plan_of(inputs);
    for (const ExpertSlots& part : plan.parts()) {
      quantise_rows_1x128(stream, part, inputs.k, in.data(), out.data(), scales.data());
    }
    stream.synchronize();
    EXPECT_EQ((Quantised{out.host(), scales.host()}), want) << key;
  }
}

// 448 times the scale of a block is its largest, so 448 is there in every block that is not zero.
TEST(Quantise, a_block_of_zeros_has_scale_one) {
  Inputs inputs{{1}, {4}, 256, std::vector<std::uint16_t>(256, 0)};
  inputs.values[200] = bf16_of_float(-3.5F);
  const Quantised got = inputs.with_scales_of_128();
  EXPECT_EQ(got.scales[0], 1.0F);
  EXPECT_EQ(got.scales[4], 3.5F / 448);
  EXPECT_EQ(got.codes[200], 0xfe);
}

PayloadStream weights_of(std::uint64_t key) {
  return {RandomStream(9, epsweep::Stream::test, key), 0x1p-11F};
}

std::vector<float> values_of(const PayloadStream& stream, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  fill_payload(stream, 0, std::span(values));
  return values;
}

TEST(Quantise, weights_with_one_scale_are_the_hosts) {
  for (const std::int64_t count : {16, 256, 70'000 * 16}) {
    DeviceArray<std::uint8_t> out(count);
    TestStream stream;
    fill_e4m3(stream, weights_of(1).words, count, out.data());
    stream.synchronize();
    std::vector<std::uint8_t> want;
    for (const float value : values_of(weights_of(1), count)) {
      want.push_back(e4m3_of_float(value / 0x1p-11F));
    }
    EXPECT_EQ(out.host(), want) << count;
  }
}

TEST(Quantise, weights_with_scales_of_128_are_the_hosts) {
  struct Shape {
    std::int64_t n, k;
  };
  for (const Shape shape : {Shape{16, 16}, Shape{128, 128}, Shape{144, 656}, Shape{300, 272}}) {
    const std::int64_t cells = scale_blocks(shape.n) * scale_row(shape.k);
    const std::vector<float> values = values_of(weights_of(2), shape.n * shape.k);
    std::vector<float> largest(static_cast<std::size_t>(cells), 0), want_scales;
    const auto cell = [&](std::int64_t row, std::int64_t col) {
      return static_cast<std::size_t>(row / 128 * scale_row(shape.k) + col / 128);
    };
    const auto value = [&](std::int64_t row, std::int64_t col) {
      return values[static_cast<std::size_t>(row * shape.k + col)];
    };
    for (std::int64_t row = 0; row < shape.n; ++row) {
      for (std::int64_t col = 0; col < shape.k; ++col) {
        float& most = largest[cell(row, col)];
        most = std::max(most, std::abs(value(row, col)));
      }
    }
    for (const float most : largest) want_scales.push_back(most > 0 ? most / 448 : 1);
    std::vector<std::uint8_t> want;
    for (std::int64_t row = 0; row < shape.n; ++row) {
      for (std::int64_t col = 0; col < shape.k; ++col) {
        want.push_back(e4m3_of_float(value(row, col) / want_scales[cell(row, col)]));
      }
    }
    DeviceArray<std::uint8_t> out(shape.n * shape.k);
    DeviceArray<float> scales(cells);
    TestStream stream;
    fill_e4m3_128x128(stream, weights_of(2).words, 0x1p-11F, shape.n, shape.k, out.data(),
                      scales.data());
    stream.synchronize();
    EXPECT_EQ(scales.host(), want_scales) << shape.n << " x " << shape.k;
    EXPECT_EQ(out.host(), want) << shape.n << " x " << shape.k;
  }
}

TEST(Quantise, the_layout_of_weight_scales_is_cublaslts) {
  EXPECT_EQ(scale_row(16), 4);
  EXPECT_EQ(scale_row(512), 4);
  EXPECT_EQ(scale_row(528), 8);
  EXPECT_EQ(weight_scales(4096, 7168), 32 * 56);
  EXPECT_EQ(weight_scales(7168, 2176), 56 * 20);
}

}  // namespace
}  // namespace epsweep::cuda
