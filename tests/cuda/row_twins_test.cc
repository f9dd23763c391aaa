// Moving, combining and multiplying rows on the CUDA backend against the CPU backend, on random
// shapes, zero rows and odd sizes included. Bits are equal wherever the arithmetic is exact.
#include <cmath>

#include "cuda/kernels/payload.h"
#include "device/grouped_gemm.h"
#include "device_array.h"
#include "twins.h"
#include "workload/payload.h"

namespace epsweep::cuda {
namespace {

// Bytes of a row and from row to row: even, and half of them multiples of 16.
std::int64_t random_row_bytes(Draws& draws) {
  return draws.coin() ? 16 * draws.between(1, 300) : 2 * draws.between(1, 1200);
}

TEST_F(Twins, rows_are_scattered_and_gathered_alike) {
  for (std::uint64_t key = 0; key < kCases; ++key) {
    SCOPED_TRACE(key);
    Draws draws(300 + key);
    const std::int64_t rows = draws.one_of<std::int64_t>({0, 1, 2, 37, 150});
    const std::int64_t row_bytes = random_row_bytes(draws);
    const std::int64_t stride = row_bytes + (draws.coin() ? 0 : 2 * draws.between(0, 16));
    const auto repeat = static_cast<int>(draws.between(1, 8));
    const std::vector<std::uint8_t> in = draws.bytes((rows + repeat - 1) / repeat * stride);
    const std::vector<std::int32_t> places = draws.places(rows, rows + 3);
    expect_same([&](Side& side) {
      const Buffer from = side.with(in), position = side.with(places);
      Buffer out = side.poisoned((rows + 3) * row_bytes);
      side.ops().scatter_rows(side.lane(), from, stride, repeat,
                              {.buffer = &position, .count = rows}, row_bytes, out);
      return side.host<std::uint8_t>(out);
    });
    const std::int64_t sources = draws.between(1, 20);
    const std::vector<std::uint8_t> gathered = draws.bytes(sources * row_bytes);
    const std::vector<std::int32_t> wanted = draws.indices(rows, sources);
    expect_same([&](Side& side) {
      const Buffer from = side.with(gathered), source = side.with(wanted);
      Buffer out = side.poisoned(rows * row_bytes);
      side.ops().gather_rows(side.lane(), from, {.buffer = &source, .count = rows}, row_bytes, out);
      return side.host<std::uint8_t>(out);
    });
  }
}

// As exchange unit rank does: rows among smaller things, strides below a row.
TEST_F(Twins, rows_are_moved_alike) {
  for (std::uint64_t key = 0; key < kCases; ++key) {
    SCOPED_TRACE(key);
    Draws draws(400 + key);
    const std::int64_t rows = draws.one_of<std::int64_t>({0, 1, 2, 37, 150});
    const std::int64_t granule = draws.one_of<std::int64_t>({2, 4, 8, 16});
    const std::int64_t granules = draws.between(1, 70), row_bytes = granule * granules;
    const std::int64_t sources = draws.between(1, 20);
    const bool has_position = draws.coin();
    const std::int64_t out_stride =
        has_position ? granule : row_bytes + granule * draws.between(0, 2);
    const std::vector<std::uint8_t> in = draws.bytes(sources * row_bytes);
    std::vector<std::int32_t> source = draws.indices(rows, (sources - 1) * granules + 1);
    // Whole rows that do not overlap, in granules.
    std::vector<std::int32_t> position = draws.places(rows, rows + 2);
    for (std::int32_t& place : position) place *= static_cast<std::int32_t>(granules);
    expect_same([&](Side& side) {
      const Buffer from = side.with(in), sources_of = side.with(source),
                   positions = side.with(position);
      Buffer out = side.poisoned(has_position ? (rows + 2) * row_bytes : rows * out_stride);
      side.ops().move_rows(
          side.lane(),
          {.row_bytes = row_bytes,
           .in_stride_bytes = granule,
           .out_stride_bytes = out_stride,
           .source = {.buffer = &sources_of, .count = rows},
           .position = {.buffer = has_position ? &positions : nullptr, .count = rows}},
          from, out);
      return side.host<std::uint8_t>(out);
    });
  }
}

TEST_F(Twins, activations_are_alike) {
  for (std::uint64_t key = 0; key < kCases; ++key) {
    SCOPED_TRACE(key);
    Draws draws(500 + key);
    const std::int64_t rows = draws.one_of<std::int64_t>({0, 1, 3, 50});
    const std::int64_t cols = draws.coin() ? 8 * draws.between(1, 40) : draws.between(1, 300);
    const DType dtype = draws.coin() ? DType::bf16 : DType::fp32;
    const Activation kind = draws.coin() ? Activation::swiglu : Activation::squared_relu;
    const std::int64_t in_cols = kind == Activation::swiglu ? 2 * cols : cols;
    // Far enough for the exponential to vanish and to overflow.
    const std::vector<float> in = draws.floats(rows * in_cols, draws.coin() ? 4 : 120);
    const auto run = [&](Side& side) {
      const Buffer from = side.with(in, dtype);
      Buffer out = side.poisoned(rows * cols * bytes_of(dtype));
      side.ops().activation(side.lane(), kind, dtype, rows, cols, from, out);
      return side.host_values(out, dtype);
    };
    const std::vector<float> got = run(cuda_), want = run(cpu_);
    ASSERT_EQ(got.size(), want.size());
    // A product, a quotient and an exponential that is right to a few units in the last place; in
    // bf16 the neighbouring number. Where exp(-gate) leaves fp32, the CPU's keeps its largest value
    // and the device's is infinite: e^-86 times at most 120^2, 1e-33, for 0. squared_relu is exact
    // before it is stored.
    const double relative =
        kind == Activation::squared_relu ? 0 : (dtype == DType::fp32 ? 2e-6 : 1.0 / 128);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], relative * std::abs(want[i]) + (relative > 0 ? 1e-33 : 0)) << i;
    }
  }
}

TEST_F(Twins, sums_of_rows_are_alike) {
  for (std::uint64_t key = 0; key < kCases; ++key) {
    SCOPED_TRACE(key);
    Draws draws(600 + key);
    const std::int64_t cols = draws.coin() ? 8 * draws.between(1, 200) : draws.between(1, 1100);
    const DType dtype = draws.coin() ? DType::bf16 : DType::fp32;
    const DType out_dtype = draws.coin() ? DType::bf16 : DType::fp32;
    const std::int64_t tokens = draws.one_of<std::int64_t>({0, 1, 2, 23});
    const auto top_k = static_cast<int>(draws.between(1, 8));
    const std::int64_t rows = tokens * top_k;
    const std::vector<float> in = draws.eighths((rows + 1) * cols), weights = draws.eighths(rows);
    const std::vector<std::int32_t> position = draws.places(rows, rows + 1);
    expect_same([&](Side& side) {
      const Buffer places = side.with(position), factors = side.with(weights),
                   from = side.with(in, dtype);
      Buffer out = side.poisoned(tokens * cols * 4);
      side.ops().weighted_reduce(side.lane(), dtype, top_k, {.buffer = &places, .count = rows},
                                 factors, cols, from, out);
      return side.host<float>(out);
    });
    std::vector<std::int32_t> first = {0};
    for (std::int64_t s = 0; s < tokens; ++s) {
      first.push_back(first.back() + static_cast<std::int32_t>(draws.between(0, top_k)));
    }
    const std::vector<std::int32_t> row = draws.indices(first.back(), rows + 1);
    const bool is_weighted = draws.coin();
    expect_same([&](Side& side) {
      const Buffer begins = side.with(first), rows_of = side.with(row),
                   factors = side.with(weights), from = side.with(in, dtype);
      Buffer out = side.poisoned(tokens * cols * bytes_of(out_dtype));
      side.ops().segment_reduce(side.lane(),
                                {.in_dtype = dtype,
                                 .out_dtype = out_dtype,
                                 .cols = cols,
                                 .segments = tokens,
                                 .first = &begins,
                                 .row = &rows_of,
                                 .weights = is_weighted ? &factors : nullptr},
                                from, out);
      return side.host_values(out, out_dtype);
    });
  }
}

// Every kernel against the CPU's plain loops: one expert with all rows, most without any.
TEST_F(Twins, grouped_products_are_alike) {
  const auto& catalog = GroupedGemmCatalog::instance();
  for (std::uint64_t key = 0; key < 12; ++key) {
    Draws draws(700 + key);
    GemmShape shape{.num_experts = static_cast<int>(draws.between(1, 20)),
                    .n = 16 * draws.between(1, 5),
                    .k = 32 * draws.between(1, 3),
                    .dtype = draws.coin() ? DType::bf16 : DType::fp32};
    std::vector<std::int64_t> rows;
    std::int64_t total = 0;
    for (int e = 0; e < shape.num_experts; ++e) {
      rows.push_back(draws.one_of<std::int64_t>({0, 0, 1, 2, 9, 17}));
      total += rows.back();
    }
    const std::vector<float> x = draws.eighths(total * shape.k);
    const auto run = [&](Side& side, const std::string& name) {
      const auto gemm = catalog.at(name).make(shape, 1);
      // Odd multiples, up to 255, of a 256th.
      gemm->prepare([&](int expert) {
        return PayloadStream{
            RandomStream(key, epsweep::Stream::test, static_cast<std::uint64_t>(expert)),
            1.0F / 256};
      });
      gemm->warm(rows);
      const Buffer in = side.with(x, shape.dtype);
      Buffer out = side.poisoned(total * shape.n * bytes_of(shape.dtype));
      gemm->run(side.lane(), in, out, rows);
      return side.host_values(out, shape.dtype);
    };
    const std::vector<float> want = run(cpu_, "reference");
    for (const std::string& name : catalog.names()) {
      if (catalog.at(name).backend != "cuda" || catalog.at(name).refuses(shape)) continue;
      EXPECT_EQ(run(cuda_, name), want) << name << " " << key;
    }
  }
}

TEST(FillPayload, any_range_equals_the_host_function) {
  for (std::uint64_t key = 0; key < kCases; ++key) {
    Draws draws(800 + key);
    const std::int64_t cols = draws.between(1, 700), row = draws.between(0, 1 << 20);
    std::vector<float> want(static_cast<std::size_t>(cols));
    token_matrix(11, cols).fill_row(row, std::span(want));
    const std::int64_t begin = draws.between(0, cols), count = draws.between(0, cols - begin);
    TestStream stream;
    DeviceArray<float> out(count + 1);
    fill_payload(stream, RandomStream(11, epsweep::Stream::token), row * cols + begin, 2.0F / 256,
                 count, ElementType::fp32, out.data());
    stream.synchronize();
    std::vector<float> got = out.host();
    EXPECT_TRUE(std::isnan(got.back())) << "written past the end";
    got.pop_back();
    EXPECT_EQ(got, std::vector<float>(want.begin() + begin, want.begin() + begin + count)) << key;
  }
}

}  // namespace
}  // namespace epsweep::cuda
