// Every grouped GEMM of the CUDA backend against plain loops.
#include "device/grouped_gemm.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/random.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/expert_matrices.h"
#include "cuda/matmul.h"
#include "device_array.h"

namespace epsweep::cuda {
namespace {

float small_value(std::uint64_t key, std::uint64_t index) {
  const RandomStream random(2, epsweep::Stream::test, key);
  return static_cast<float>(static_cast<int>(random.below(index, 17)) - 8) / 8;
}

std::vector<float> small_values(std::uint64_t key, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = small_value(key, i);
  return values;
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

PayloadStream payload_weights(int expert) {
  return {RandomStream(2, epsweep::Stream::test, static_cast<std::uint64_t>(expert)), 0x1p-8F};
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
  const std::vector<float> inputs = small_values(1, total * c.k);
  std::vector<Element> x(inputs.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = as_element<Element>(inputs[i]);
  const auto gemm = entry.make(shape, 1);
  gemm->prepare(payload_weights);
  gemm->warm(c.rows);
  DeviceArray<Element> device_x(x), y(total * c.n);
  Buffer x_buffer(device_x.data(), total * c.k * static_cast<std::int64_t>(sizeof(Element)),
                  [](void*) {});
  Buffer y_buffer(y.data(), total * c.n * static_cast<std::int64_t>(sizeof(Element)), [](void*) {});
  CudaLane lane;
  const GemmWork work = gemm->run(lane, x_buffer, y_buffer, c.rows);
  lane.synchronize();
  EXPECT_GE(work.computed_rows, total) << name;
  EXPECT_GE(work.stored_rows, total) << name;
  EXPECT_EQ(work.kernel_calls > 0, total > 0) << name;
  EXPECT_EQ(gemm->weight_bytes(), shape.num_experts * c.n * c.k * bytes_of(c.dtype));
  const std::vector<Element> got = y.host();
  std::int64_t row = 0;
  for (std::size_t expert = 0; expert < c.rows.size(); ++expert) {
    std::vector<float> w(static_cast<std::size_t>(c.n * c.k));
    fill_payload(payload_weights(static_cast<int>(expert)), 0, std::span(w));
    for (std::int64_t r = 0; r < c.rows[expert]; ++r, ++row) {
      for (std::int64_t col = 0; col < c.n; ++col) {
        const float* in = inputs.data() + row * c.k;
        const Element want =
            as_element<Element>(std::inner_product(in, in + c.k, w.data() + col * c.k, 0.0F));
        ASSERT_EQ(got[static_cast<std::size_t>(row * c.n + col)], want)
            << name << " expert " << expert << " row " << r << " column " << col;
      }
    }
  }
}

// One run of two-byte elements, 32 in and 16 out, on memory that says nothing.
GemmWork run_once(const std::string& name, const std::vector<std::int64_t>& rows) {
  const GemmShape shape{
      .num_experts = static_cast<int>(rows.size()), .n = 16, .k = 32, .dtype = DType::bf16};
  const auto gemm = GroupedGemmCatalog::instance().at(name).make(shape, 1);
  gemm->prepare(payload_weights);
  gemm->warm(rows);
  const std::int64_t total = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  Buffer x = make_device_buffer(total * 64), y = make_device_buffer(total * 32);
  CudaLane lane;
  const GemmWork work = gemm->run(lane, x, y, rows);
  lane.synchronize();
  return work;
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

// Whole tiles, one row less and one more; a hot expert beside cold ones.
TEST_P(CudaGroupedGemm, multiplies_rows_around_tiles_and_of_a_hot_expert) {
  expect_right<std::uint16_t>(GetParam(), {{127, 128, 0, 129}, 16, 32, DType::bf16});
  expect_right<std::uint16_t>(GetParam(), {{1, 5000, 0, 1}, 16, 32, DType::bf16});
}

TEST_P(CudaGroupedGemm, multiplies_for_more_experts_than_one_launch_has) {
  std::vector<std::int64_t> rows(300, 1);
  rows[0] = rows[255] = rows[256] = 0;
  rows[299] = 3;
  expect_right<std::uint16_t>(GetParam(), {rows, 16, 32, DType::bf16});
}

// The host is done with one call before the device has begun it: nothing the next call changes may
// belong to the first.
TEST_P(CudaGroupedGemm, may_be_called_again_before_it_is_done) {
  constexpr std::int64_t kN = 16, kK = 32;
  const std::vector<std::vector<std::int64_t>> counts = {{1, 4, 0}, {3, 0, 2}};
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(GetParam());
  if (const auto reason = entry.refuses({3, kN, kK})) GTEST_SKIP() << *reason;
  const auto gemm = entry.make({3, kN, kK}, 1);
  const std::vector<float> inputs = small_values(1, 5 * kK);
  gemm->prepare(payload_weights);
  std::vector<std::uint16_t> x;
  for (const float value : inputs) x.push_back(bf16_of_float(value));
  DeviceArray<std::uint16_t> device_x(x), together(2 * 5 * kN), alone(2 * 5 * kN);
  Buffer in(device_x.data(), 5 * kK * 2, [](void*) {});
  CudaLane lane;
  for (DeviceArray<std::uint16_t>* y : {&together, &alone}) {
    for (const auto& rows : counts) gemm->warm(rows);
    for (std::size_t call = 0; call < counts.size(); ++call) {
      Buffer out(y->data() + call * 5 * kN, 5 * kN * 2, [](void*) {});
      gemm->run(lane, in, out, counts[call]);
      if (y == &alone) lane.synchronize();
    }
    lane.synchronize();
  }
  EXPECT_EQ(together.host(), alone.host());
}

// More than the height of a grid. What `auto` runs is here by its own name.
TEST_P(CudaGroupedGemm, multiplies_more_than_65535_rows) {
  if (GetParam() == "auto") GTEST_SKIP() << "one of the others";
  expect_right<std::uint16_t>(GetParam(), {{1, 65'600, 2}, 16, 32, DType::bf16});
}

// 32-bit counts of libraries and kernels end where they end, and say so before timing.
TEST_P(CudaGroupedGemm, refuses_rows_it_cannot_count) {
  const GemmShape shape{.num_experts = 2, .n = 16, .k = 32, .dtype = DType::bf16};
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(GetParam());
  if (const auto reason = entry.refuses(shape)) GTEST_SKIP() << *reason;
  const auto gemm = entry.make(shape, 1);
  if (GetParam() == "auto") return;
  const std::vector<std::int64_t> rows = {1, 3'000'000'000};
  try {
    gemm->warm(rows);
    // cuBLASLt counts rows in 64 bits.
    EXPECT_EQ(GetParam().substr(0, 13), "cublaslt_loop");
  } catch (const RunError& error) {
    if (GetParam().starts_with("cublaslt_loop")) return;  // it may find no algorithm
    EXPECT_NE(std::string(error.what()).find("does not fit 32 bits"), std::string::npos)
        << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, CudaGroupedGemm, testing::ValuesIn(cuda_gemms()),
                         [](const auto& kernel) { return kernel.param; });

// What run() does for 3, 0, 130 and 128 rows, by hand: 48 elements of 2 bytes a row in and out.
TEST(GemmCounts, say_what_padding_costs) {
  struct Expected {
    const char* name;
    std::int64_t kernel_calls, computed_rows, stored_rows, workspace_bytes;
  };
  const std::int64_t library = kMatmulWorkspaceBytes;
  const std::vector<Expected> all = {
      {"cublaslt_loop", 3, 261, 261, library},
      {"cublaslt_loop_4_streams", 3, 261, 261, 4 * library},
      {"cublas_grouped", 2, 261, 261, library + 4 * (5 * 8 + 6 * 4)},
      {"cublaslt_padded", 3, 520, 520, library + 520 * 96},
      {"cublas_padded_128", 3, 512, 512, library + 512 * 96 + 3 * 4 * 8},
      {"gemv", 1, 8 + 136 + 128, 261, 0}};
  const std::vector<std::int64_t> rows = {3, 0, 130, 128};
  for (const Expected& expected : all) {
    const GemmWork work = run_once(expected.name, rows);
    EXPECT_EQ(work.kernel_calls, expected.kernel_calls) << expected.name;
    EXPECT_EQ(work.computed_rows, expected.computed_rows) << expected.name;
    EXPECT_EQ(work.stored_rows, expected.stored_rows) << expected.name;
    EXPECT_EQ(work.workspace_bytes, expected.workspace_bytes) << expected.name;
    EXPECT_EQ(work.choice, nullptr);
    const auto scratch = GroupedGemmCatalog::instance().at(expected.name).scratch_bytes;
    if (scratch == nullptr) continue;
    EXPECT_EQ(scratch({.num_experts = 4, .n = 16, .k = 32, .dtype = DType::bf16}, rows),
              std::string(expected.name).starts_with("cublaslt_loop")
                  ? 0
                  : expected.workspace_bytes - library)
        << expected.name;
  }
}

// Copies of 300 experts' rows are two launches each way, not 600 copies.
TEST(GemmCounts, count_the_launches_of_copies) {
  const std::vector<std::int64_t> rows(300, 1);
  EXPECT_EQ(run_once("cublaslt_padded", rows).kernel_calls, 1 + 2 * 2);
  EXPECT_EQ(run_once("cublas_padded_128", rows).kernel_calls, 1 + 2 * 2);
  EXPECT_EQ(run_once("gemv", rows).kernel_calls, 2);
}

TEST(Matmul, refuses_sizes_past_32_bits) {
  EXPECT_TRUE(refuse_narrow_rows({.num_experts = 1, .n = 1LL << 31, .k = 16}));
  EXPECT_TRUE(refuse_narrow_rows({.num_experts = 1, .n = 16, .k = 1LL << 31}));
  EXPECT_FALSE(refuse_narrow_rows({.num_experts = 1, .n = 1LL << 30, .k = 16}));
}

// Six experts of half a GiB.
TEST(ExpertMatricesTest, bytes_do_not_overflow) {
  const ExpertMatrices matrices(
      {.num_experts = 6, .n = 1 << 14, .k = 1 << 14, .dtype = DType::bf16});
  EXPECT_EQ(matrices.bytes(), 6LL << 29);
}

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
