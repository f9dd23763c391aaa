// Products of e4m3 weights and inputs that are quantised on their way, against plain loops.
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/float8.h"
#include "base/payload_stream.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_memory.h"
#include "cuda/expert_matrices.h"
#include "cuda/matmul.h"
#include "device/grouped_gemm.h"
#include "device_array.h"
#include "twins.h"

namespace epsweep::cuda {
namespace {

constexpr float kUnit = 0x1p-9F;

PayloadStream weights_of(int expert) {
  return {RandomStream(7, epsweep::Stream::test, static_cast<std::uint64_t>(expert)), kUnit};
}

float as_e4m3(float value, float scale) {
  return float_of_e4m3(e4m3_of_float(value / scale)) * scale;
}

float largest_of(const std::vector<float>& values, std::size_t begin, std::size_t end) {
  float largest = 0;
  for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
  return largest;
}

// [rows][cols] as the product multiplies them: blocks of `tall` x 128, or one scale.
std::vector<float> quantised(DType dtype, std::vector<float> values, std::int64_t cols, float scale,
                             std::size_t tall) {
  const auto width = static_cast<std::size_t>(cols), rows = values.size() / width;
  if (dtype == DType::fp8) {
    for (float& value : values) value = as_e4m3(value, scale);
    return values;
  }
  for (std::size_t top = 0; top < rows; top += tall) {
    const std::size_t bottom = std::min(rows, top + tall);
    for (std::size_t left = 0; left < width; left += 128) {
      const std::size_t right = std::min(width, left + 128);
      float largest = 0;
      for (std::size_t row = top; row < bottom; ++row) {
        largest = std::max(largest, largest_of(values, row * width + left, row * width + right));
      }
      for (std::size_t row = top; row < bottom; ++row) {
        for (std::size_t i = row * width + left; i < row * width + right; ++i) {
          values[i] = as_e4m3(values[i], largest > 0 ? largest / 448 : 1);
        }
      }
    }
  }
  return values;
}

struct Case {
  std::vector<std::int64_t> rows;
  std::int64_t n, k;
  std::int64_t total() const { return std::accumulate(rows.begin(), rows.end(), std::int64_t{0}); }
};

std::vector<Case> cases() {
  std::vector<std::int64_t> many(300, 1);
  many[0] = many[255] = many[256] = 0;
  many[299] = 3;
  return {{{1, 2, 3}, 32, 16},
          {{0, 5, 0, 0, 1, 16}, 160, 144},
          {{40, 0, 7, 9, 4, 1, 1}, 64, 528},
          {{4, 8, 0, 16}, 16, 128},
          {{130}, 16, 16},
          {{0, 0}, 16, 16},
          {many, 16, 32}};
}

struct Product {
  std::vector<float> x;  // as bf16 holds them
  std::vector<std::uint16_t> y;
  GemmWork work;
};

Product run_once(GroupedGemm& gemm, const Case& c) {
  Product made;
  Draws draws(3);
  std::vector<std::uint16_t> half;
  for (const float value : draws.floats(c.total() * c.k, 4.0)) {
    half.push_back(bf16_of_float(value));
    made.x.push_back(float_of_bf16(half.back()));
  }
  gemm.prepare(weights_of);
  gemm.warm(c.rows);
  DeviceArray<std::uint16_t> x(half), y(c.total() * c.n);
  Buffer x_buffer(x.data(), c.total() * c.k * 2, [](void*) {});
  Buffer y_buffer(y.data(), c.total() * c.n * 2, [](void*) {});
  CudaLane lane;
  made.work = gemm.run(lane, x_buffer, y_buffer, c.rows);
  lane.synchronize();
  made.y = y.host();
  return made;
}

// Half a bf16 spacing, and what sums of 14 bits may lose, which is far below what a wrong scale,
// row or weight costs.
void expect_right(const Product& product, const Case& c, DType dtype) {
  const std::vector<float> x = quantised(dtype, product.x, c.k, 0.5F, 1);
  std::size_t row = 0;
  for (std::size_t expert = 0; expert < c.rows.size(); ++expert) {
    std::vector<float> w(static_cast<std::size_t>(c.n * c.k));
    fill_payload(weights_of(static_cast<int>(expert)), 0, std::span(w));
    w = quantised(dtype, std::move(w), c.k, kUnit, 128);
    for (std::int64_t r = 0; r < c.rows[expert]; ++r, ++row) {
      for (std::size_t out = 0; out < static_cast<std::size_t>(c.n); ++out) {
        double sum = 0, size = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(c.k); ++i) {
          const double term = static_cast<double>(x[row * static_cast<std::size_t>(c.k) + i]) *
                              static_cast<double>(w[out * static_cast<std::size_t>(c.k) + i]);
          sum += term;
          size += std::abs(term);
        }
        const float got = float_of_bf16(product.y[row * static_cast<std::size_t>(c.n) + out]);
        ASSERT_NEAR(got, sum, std::abs(sum) / 256 + size / 1024)
            << "expert " << expert << " row " << r << " column " << out;
      }
    }
  }
}

struct Kernel {
  std::string name;
  DType dtype;
};
// Else test lists would show its bytes, pointers included.
void PrintTo(const Kernel& kernel, std::ostream* out) {
  *out << kernel.name << " " << to_string(kernel.dtype);
}

std::vector<Kernel> kernels() {
  std::vector<Kernel> all;
  for (const std::string& name : GroupedGemmCatalog::instance().names()) {
    if (GroupedGemmCatalog::instance().at(name).backend != "cuda") continue;
    for (const DType dtype : {DType::fp8, DType::fp8_block128}) all.push_back({name, dtype});
  }
  return all;
}

class CudaFp8Gemm : public testing::TestWithParam<Kernel> {};

TEST_P(CudaFp8Gemm, multiplies_what_e4m3_holds) {
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(GetParam().name);
  for (const Case& c : cases()) {
    const GemmShape shape{.num_experts = static_cast<int>(c.rows.size()),
                          .n = c.n,
                          .k = c.k,
                          .dtype = GetParam().dtype};
    if (const auto reason = entry.refuses(shape)) GTEST_SKIP() << *reason;
    const auto gemm = entry.make(shape, 1);
    const Product result = run_once(*gemm, c);
    expect_right(result, c, GetParam().dtype);
    EXPECT_GE(result.work.computed_rows, c.total());
    EXPECT_EQ(result.work.kernel_calls > 0, c.total() > 0);
    EXPECT_EQ(gemm->weight_bytes(), shape.num_experts * c.n * c.k);
  }
}

// Quantised inputs and outputs of the kernel's own belong to the call before.
TEST_P(CudaFp8Gemm, may_be_called_again_before_it_is_done) {
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(GetParam().name);
  const GemmShape shape{.num_experts = 3, .n = 16, .k = 32, .dtype = GetParam().dtype};
  if (const auto reason = entry.refuses(shape)) GTEST_SKIP() << *reason;
  const auto gemm = entry.make(shape, 1);
  gemm->prepare(weights_of);
  const std::vector<std::vector<std::int64_t>> counts = {{1, 4, 0}, {3, 0, 2}};
  for (const auto& rows : counts) gemm->warm(rows);
  std::vector<std::uint16_t> x;
  for (const float value : Draws(5).floats(2 * 5 * 32, 2.0)) x.push_back(bf16_of_float(value));
  DeviceArray<std::uint16_t> device_x(x), together(2 * 5 * 16), alone(2 * 5 * 16);
  CudaLane lane;
  for (DeviceArray<std::uint16_t>* y : {&together, &alone}) {
    for (std::size_t call = 0; call < counts.size(); ++call) {
      const Buffer in(device_x.data() + call * 5 * 32, 5 * 32 * 2, [](void*) {});
      Buffer out(y->data() + call * 5 * 16, 5 * 16 * 2, [](void*) {});
      gemm->run(lane, in, out, counts[call]);
      if (y == &alone) lane.synchronize();
    }
    lane.synchronize();
  }
  EXPECT_EQ(together.host(), alone.host());
}

INSTANTIATE_TEST_SUITE_P(Kernels, CudaFp8Gemm, testing::ValuesIn(kernels()),
                         [](const auto& kernel) {
                           return kernel.param.name + "_" +
                                  std::string(to_string(kernel.param.dtype));
                         });

// 3, 0, 130 and 128 rows of 48 elements in and out, one launch to quantise them. Products of 4, 132
// and 128 rows where scales are of 128, whose outputs one launch copies.
TEST(Fp8Counts, say_what_quantising_and_padding_cost) {
  struct Expected {
    const char* name;
    DType dtype;
    std::int64_t kernel_calls, rows, workspace_bytes;
  };
  const std::int64_t library = kMatmulWorkspaceBytes;
  const std::vector<std::int64_t> rows = {3, 0, 130, 128};
  for (const Expected& expected :
       {Expected{"cublaslt_loop", DType::fp8, 4, 261, library + 261 * 48 + 16},
        Expected{"cublaslt_loop_4_streams", DType::fp8, 4, 261, 4 * library + 261 * 48 + 16},
        Expected{"cublaslt_padded", DType::fp8, 3, 520, library + 520 * 48 + 16 + 520 * 96},
        Expected{"cublaslt_loop", DType::fp8_block128, 5, 264,
                 library + 264 * (48 + 4) + 264 * 96}}) {
    const GemmShape shape{.num_experts = 4, .n = 48, .k = 48, .dtype = expected.dtype};
    const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at(expected.name);
    if (entry.refuses(shape)) continue;
    const auto gemm = entry.make(shape, 1);
    const GemmWork work = run_once(*gemm, {rows, 48, 48}).work;
    EXPECT_EQ(work.kernel_calls, expected.kernel_calls) << expected.name;
    EXPECT_EQ(work.computed_rows, expected.rows) << expected.name;
    EXPECT_EQ(work.stored_rows, expected.rows) << expected.name;
    EXPECT_EQ(work.workspace_bytes, expected.workspace_bytes) << expected.name;
    EXPECT_EQ(entry.scratch_bytes(shape, rows), expected.workspace_bytes % library)
        << expected.name;
  }
}

// Rows in multiples of 4 go where they belong at once.
TEST(Fp8Counts, copy_no_outputs_where_no_row_is_added) {
  const GemmShape shape{.num_experts = 2, .n = 48, .k = 48, .dtype = DType::fp8_block128};
  const GroupedGemmEntry& entry = GroupedGemmCatalog::instance().at("cublaslt_loop");
  if (const auto reason = entry.refuses(shape)) GTEST_SKIP() << *reason;
  const auto gemm = entry.make(shape, 1);
  const GemmWork work = run_once(*gemm, {{4, 8}, 48, 48}).work;
  EXPECT_EQ(work.kernel_calls, 3);
  EXPECT_EQ(work.workspace_bytes, kMatmulWorkspaceBytes + 12 * (48 + 4));
}

TEST(ExpertMatricesTest, wants_one_unit_for_one_scale) {
  ExpertMatrices matrices({.num_experts = 2, .n = 16, .k = 16, .dtype = DType::fp8});
  EXPECT_THROW(matrices.load([](int expert) {
    PayloadStream stream = weights_of(expert);
    stream.unit = expert == 0 ? 0.5F : 0.25F;
    return stream;
  }),
               RunError);
}

}  // namespace
}  // namespace epsweep::cuda
