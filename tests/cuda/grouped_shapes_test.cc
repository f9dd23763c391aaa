// Row counts that break grouped products: one row, none, very many, many experts, runs in flight.
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/payload_stream.h"
#include "cuda/cuda_lane.h"
#include "device/grouped_gemm.h"
#include "device_array.h"

namespace epsweep::cuda {
namespace {

using Rows = std::vector<std::int64_t>;

// Quarters between -1 and 1, times weights of eight bits: sums are exact in any order.
float x_value(std::int64_t row, std::int64_t i) {
  return static_cast<float>((row * 5 + i * 3) % 9 - 4) / 4;
}
PayloadStream weights_of(int expert) {
  return {RandomStream(4, epsweep::Stream::test, static_cast<std::uint64_t>(expert)), 0x1p-8F};
}

// x and y of one product; first_row shifts the values, so that runs differ.
struct Product {
  Rows rows;
  GemmShape shape;
  std::int64_t first_row;
  DeviceArray<std::uint16_t> x, y;

  Product(const GemmShape& of, Rows rows_per_expert, std::int64_t shift)
      : rows(std::move(rows_per_expert)),
        shape(of),
        first_row(shift),
        x(inputs()),
        y(total() * of.n) {}

  std::int64_t total() const { return std::accumulate(rows.begin(), rows.end(), std::int64_t{0}); }
  std::vector<std::uint16_t> inputs() const {
    std::vector<std::uint16_t> values;
    for (std::int64_t row = 0; row < total(); ++row) {
      for (std::int64_t i = 0; i < shape.k; ++i) {
        values.push_back(bf16_of_float(x_value(first_row + row, i)));
      }
    }
    return values;
  }

  GemmWork start(GroupedGemm& gemm, Lane& lane) {
    const Buffer x_buffer(x.data(), total() * shape.k * 2, [](void*) {});
    Buffer y_buffer(y.data(), total() * shape.n * 2, [](void*) {});
    return gemm.run(lane, x_buffer, y_buffer, rows);
  }

  void expect_right() const {
    const std::vector<std::uint16_t> got = y.host();
    std::int64_t row = 0;
    std::vector<float> w(static_cast<std::size_t>(shape.n * shape.k));
    for (std::size_t expert = 0; expert < rows.size(); ++expert) {
      fill_payload(weights_of(static_cast<int>(expert)), 0, std::span(w));
      for (std::int64_t r = 0; r < rows[expert]; ++r, ++row) {
        for (std::int64_t out = 0; out < shape.n; ++out) {
          float sum = 0;
          for (std::int64_t i = 0; i < shape.k; ++i) {
            sum += x_value(first_row + row, i) * w[static_cast<std::size_t>(out * shape.k + i)];
          }
          ASSERT_EQ(got[static_cast<std::size_t>(row * shape.n + out)], bf16_of_float(sum))
              << "expert " << expert << " row " << r << " output " << out;
        }
      }
    }
  }
};

class GroupedShapes : public testing::TestWithParam<std::string> {
 protected:
  // Null where the kernel refuses.
  std::unique_ptr<GroupedGemm> prepared(const GemmShape& shape) const {
    const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(GetParam());
    if (entry.refuses(shape)) return nullptr;
    auto gemm = entry.make(shape, 1);
    gemm->prepare(weights_of);
    return gemm;
  }

  void expect_right(const GemmShape& shape, const Rows& rows) const {
    const auto gemm = prepared(shape);
    if (gemm == nullptr) GTEST_SKIP() << "refused";
    gemm->warm(rows);
    Product run(shape, rows, 0);
    CudaLane lane;
    EXPECT_GE(run.start(*gemm, lane).computed_rows, run.total());
    lane.synchronize();
    run.expect_right();
  }
};

GemmShape shape_of(int num_experts, std::int64_t n, std::int64_t k) {
  return {.num_experts = num_experts, .n = n, .k = k, .dtype = DType::bf16};
}

TEST_P(GroupedShapes, one_row_each) {
  expect_right(shape_of(7, 16, 32), {1, 1, 1, 1, 1, 1, 1});
}

TEST_P(GroupedShapes, one_row_in_all) {
  expect_right(shape_of(6, 16, 32), {0, 0, 0, 1, 0, 0});
}

TEST_P(GroupedShapes, sums_that_end_inside_a_chunk) {
  expect_right(shape_of(3, 24, 40), {17, 2, 129});
}

TEST_P(GroupedShapes, more_than_sixteen_bits_of_rows_on_one_expert) {
  expect_right(shape_of(3, 8, 8), {0, 65'537, 1});
}

TEST_P(GroupedShapes, more_experts_than_one_launch_describes) {
  Rows rows(520, 0);
  for (std::size_t expert = 0; expert < rows.size(); ++expert)
    rows[expert] = expert % 3 == 0 ? 0 : 1;
  rows.back() = 2;
  expect_right(shape_of(520, 16, 32), rows);
}

// Nothing waits between runs: the second must not change what the first reads.
TEST_P(GroupedShapes, runs_in_flight_do_not_disturb_each_other) {
  const GemmShape shape = shape_of(4, 16, 32);
  const auto gemm = prepared(shape);
  if (gemm == nullptr) GTEST_SKIP() << "refused";
  Product first(shape, {5, 0, 2, 9}, 0), second(shape, {0, 20, 1, 0}, 100),
      third(shape, {1, 1, 1, 1}, 7);
  for (const Product* run : {&first, &second, &third}) gemm->warm(run->rows);
  CudaLane lane;
  for (Product* run : {&first, &second, &third}) run->start(*gemm, lane);
  lane.synchronize();
  for (const Product* run : {&first, &second, &third}) run->expect_right();
}

std::vector<std::string> cuda_kernels() {
  std::vector<std::string> names;
  for (const std::string& name : GroupedGemmCatalog::instance().names()) {
    if (GroupedGemmCatalog::instance().at(name).backend == "cuda") names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Kernels, GroupedShapes, testing::ValuesIn(cuda_kernels()),
                         [](const auto& kernel) { return kernel.param; });

}  // namespace
}  // namespace epsweep::cuda
