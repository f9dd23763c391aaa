// Every grouped GEMM of the CUDA backend against plain loops.
#include "device/grouped_gemm.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/random.h"
#include "cuda/cuda_lane.h"
#include "cuda/matmul.h"
#include "device_array.h"

namespace epsweep::cuda {
namespace {

float small_value(std::uint64_t key, std::uint64_t index) {
  const RandomStream random(2, epsweep::Stream::test, key);
  return static_cast<float>(static_cast<int>(random.below(index, 17)) - 8) / 8;
}

struct GemmCase {
  std::vector<std::int64_t> rows;
  std::int64_t n, k;
  DType dtype;
};

std::vector<std::string> cuda_gemms() {
  std::vector<std::string> names;
  for (const std::string& name : GroupedGemmCatalog::instance().names()) {
    if (GroupedGemmCatalog::instance().at(name).backend == "cuda") names.push_back(name);
  }
  return names;
}

template <typename Element>
Element as_element(float value) {
  if constexpr (sizeof(Element) == 2) {
    return bf16_of_float(value);
  } else {
    return value;
  }
}

// Inputs are eighths between -1 and 1 and weights have 8 bits: sums of up to 2^12 products are
// exact in fp32, so any order of adding gives the same bits before the last rounding.
template <typename Element>
void expect_right(const std::string& name, const GemmCase& c) {
  const GemmShape shape{
      .num_experts = static_cast<int>(c.rows.size()), .n = c.n, .k = c.k, .dtype = c.dtype};
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(name);
  if (entry.refuses(shape)) return;
  const std::int64_t total = std::accumulate(c.rows.begin(), c.rows.end(), std::int64_t{0});
  std::vector<Element> x(static_cast<std::size_t>(total * c.k));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = as_element<Element>(small_value(1, i));
  const WeightSource weights = [](int expert) {
    return PayloadStream{RandomStream(2, epsweep::Stream::test, static_cast<std::uint64_t>(expert)),
                         0x1p-8F};
  };
  const auto gemm = entry.make(shape, 1);
  gemm->prepare(weights);
  gemm->warm(c.rows);
  DeviceArray<Element> device_x(x), y(total * c.n);
  Buffer x_buffer(device_x.data(), total * c.k * static_cast<std::int64_t>(sizeof(Element)),
                  [](void*) {});
  Buffer y_buffer(y.data(), total * c.n * static_cast<std::int64_t>(sizeof(Element)), [](void*) {});
  CudaLane lane;
  const GemmWork work = gemm->run(lane, x_buffer, y_buffer, c.rows);
  lane.synchronize();
  EXPECT_GE(work.computed_rows, total) << name;
  EXPECT_EQ(gemm->weight_bytes(), shape.num_experts * c.n * c.k * bytes_of(c.dtype));
  const std::vector<Element> got = y.host();
  std::int64_t row = 0;
  for (std::size_t expert = 0; expert < c.rows.size(); ++expert) {
    std::vector<float> w(static_cast<std::size_t>(c.n * c.k));
    fill_payload(weights(static_cast<int>(expert)), 0, std::span(w));
    for (std::int64_t r = 0; r < c.rows[expert]; ++r, ++row) {
      for (std::int64_t col = 0; col < c.n; ++col) {
        float sum = 0;
        for (std::int64_t i = 0; i < c.k; ++i) {
          sum += small_value(1, static_cast<std::uint64_t>(row * c.k + i)) *
                 w[static_cast<std::size_t>(col * c.k + i)];
        }
        const Element want = as_element<Element>(sum);
        ASSERT_EQ(got[static_cast<std::size_t>(row * c.n + col)], want)
            << name << " expert " << expert << " row " << r << " column " << col;
      }
    }
  }
}

class CudaGroupedGemm : public testing::TestWithParam<std::string> {};

TEST_P(CudaGroupedGemm, multiplies_every_experts_rows) {
  for (const GemmCase& c : std::vector<GemmCase>{{{1, 2, 3}, 32, 16, DType::bf16},
                                                 {{0, 5, 0, 0, 1, 16}, 16, 48, DType::bf16},
                                                 {{40, 0, 7, 9, 3, 1, 1}, 64, 32, DType::bf16},
                                                 {{130}, 16, 16, DType::bf16},
                                                 {{0, 0}, 16, 16, DType::bf16}}) {
    expect_right<std::uint16_t>(GetParam(), c);
  }
  expect_right<float>(GetParam(), {{3, 0, 4}, 12, 20, DType::fp32});
}

INSTANTIATE_TEST_SUITE_P(Kernels, CudaGroupedGemm, testing::ValuesIn(cuda_gemms()),
                         [](const auto& kernel) { return kernel.param; });

TEST(Matmul, algorithms_are_chosen_for_neighbouring_rows_together) {
  EXPECT_EQ(algorithm_rows(1), 1);
  EXPECT_EQ(algorithm_rows(3), 4);
  EXPECT_EQ(algorithm_rows(17), 24);
  EXPECT_EQ(algorithm_rows(65), 96);
  EXPECT_EQ(algorithm_rows(512), 512);
  EXPECT_EQ(algorithm_rows(513), 640);
}

}  // namespace
}  // namespace epsweep::cuda
