// The double of cuBLASLt must notice what the library would refuse of e4m3, and where it finds its
// scales.
#include <algorithm>
#include <functional>
#include <stdexcept>

#include <gtest/gtest.h>

#include "cuda/cuda_memory.h"
#include "cuda/handles.h"
#include "cuda/matmul.h"
#include "hostcuda/device.h"
#include "hostcuda/stream_queue.h"

namespace epsweep::cuda {
namespace {

// D (m x n) = W^T (k x m) * X (k x n), as src/cuda does it; a test changes what is wrong.
struct Product {
  std::int64_t m = 16, n = 4, k = 144;  // two blocks of 128, one of them short
  std::int64_t batch = 1;
  cublasOperation_t transpose = CUBLAS_OP_T;
  cudaDataType x_type = CUDA_R_8F_E4M3, y_type = CUDA_R_16BF;
  std::int32_t w_mode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
               x_mode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  std::int8_t fast = 1;
  StreamHandle stream = make_stream();
  Buffer workspace = make_device_buffer(kMatmulWorkspaceBytes);
  Buffer w = make_device_buffer(1 << 14), x = make_device_buffer(1 << 14),
         y = make_device_buffer(1 << 14);
  Buffer w_scales = make_device_buffer(4 * 4), x_scales = make_device_buffer(4 * 2 * 4);
  const void *w_scales_at = w_scales.data(), *x_scales_at = x_scales.data();

  static Product of_blocks() {
    Product product;
    product.w_mode = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    product.x_mode = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    product.fast = 0;
    return product;
  }

  template <typename Value>
  static void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                  const Value& value) {
    check(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)), "set");
  }
  MatrixLayout layout(cudaDataType type, std::int64_t rows, std::int64_t cols) const {
    cublasLtMatrixLayout_t raw = nullptr;
    check(cublasLtMatrixLayoutCreate(&raw, type, static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(cols), rows),
          "layout");
    MatrixLayout result(raw);
    const auto count = static_cast<std::int32_t>(batch);
    cublasLtMatrixLayoutSetAttribute(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                     sizeof(count));
    return result;
  }

  // Of the heuristic, and where it accepts of the product, which has run then.
  cublasStatus_t multiply() {
    cublasLtMatmulDesc_t raw = nullptr;
    check(cublasLtMatmulDescCreate(&raw, CUBLAS_COMPUTE_32F, CUDA_R_32F), "desc");
    const MatmulDesc desc(raw);
    set(raw, CUBLASLT_MATMUL_DESC_TRANSA, transpose);
    set(raw, CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast);
    set(raw, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, w_mode);
    set(raw, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, x_mode);
    set(raw, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, w_scales_at);
    set(raw, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, x_scales_at);
    const MatrixLayout a = transpose == CUBLAS_OP_T ? layout(CUDA_R_8F_E4M3, k, m)
                                                    : layout(CUDA_R_8F_E4M3, m, k),
                       b = layout(x_type, k, n), d = layout(y_type, m, n);
    cublasLtMatmulPreference_t raw_preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&raw_preference), "preference");
    const MatmulPreference preference(raw_preference);
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        cublaslt(), raw, a.get(), b.get(), d.get(), d.get(), preference.get(), 1, &result, &found);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const float one = 1, zero = 0;
    const cublasStatus_t ran =
        cublasLtMatmul(cublaslt(), raw, &one, w.data(), a.get(), x.data(), b.get(), &zero, y.data(),
                       d.get(), y.data(), d.get(), &result.algo, workspace.data(),
                       static_cast<std::size_t>(workspace.bytes()), stream.get());
    hostcuda::drain(stream.get());
    return ran;
  }
};

class CublasFp8Double : public testing::Test {
 protected:
  void TearDown() override {
    hostcuda::set_compute_capability(hostcuda::kComputeCapability);
    hostcuda::set_cublas_version(hostcuda::kCublasVersion);
  }
  static void refuses(Product product, const std::function<void(Product&)>& spoil) {
    spoil(product);
    EXPECT_NE(product.multiply(), CUBLAS_STATUS_SUCCESS);
  }
};

TEST_F(CublasFp8Double, takes_both_scalings) {
  EXPECT_EQ(Product().multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Product::of_blocks().multiply(), CUBLAS_STATUS_SUCCESS);
}

TEST_F(CublasFp8Double, wants_tn_and_types) {
  refuses(Product(), [](Product& p) { p.transpose = CUBLAS_OP_N; });
  refuses(Product(), [](Product& p) { p.x_type = CUDA_R_16BF; });
  refuses(Product(), [](Product& p) { p.y_type = CUDA_R_8F_E4M3; });
  refuses(Product(), [](Product& p) { p.k = 136; });
  refuses(Product(), [](Product& p) { p.m = 12; });
}

TEST_F(CublasFp8Double, wants_a_device_with_fp8) {
  hostcuda::set_compute_capability(89);
  EXPECT_EQ(Product().multiply(), CUBLAS_STATUS_SUCCESS);
  refuses(Product::of_blocks(), [](Product&) {});
  hostcuda::set_compute_capability(86);
  refuses(Product(), [](Product&) {});
  hostcuda::set_compute_capability(100);
  refuses(Product::of_blocks(), [](Product&) {});
}

TEST_F(CublasFp8Double, wants_blocks_as_the_documentation_says) {
  const auto blocks = [] { return Product::of_blocks(); };
  refuses(blocks(), [](Product& p) { p.n = 3; });
  refuses(blocks(), [](Product& p) { p.fast = 1; });
  refuses(blocks(), [](Product& p) { p.batch = 2; });
  refuses(blocks(), [](Product& p) { p.x_mode = p.w_mode; });
  refuses(blocks(), [](Product& p) { p.x_mode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F; });
  refuses(blocks(), [](Product& p) { p.x_scales_at = nullptr; });
  refuses(blocks(), [](Product& p) { p.w_scales_at = static_cast<float*>(p.w_scales.data()) + 1; });
  hostcuda::set_cublas_version(120800);
  refuses(blocks(), [](Product&) {});
}

// Two scales for each of 4 rows, and a row of 4 for one band of weights.
TEST_F(CublasFp8Double, wants_enough_scales_on_the_device) {
  const Buffer host = make_pinned_buffer(64);
  for (const bool of_weights : {false, true}) {
    Product few = Product::of_blocks();
    (of_weights ? few.w_scales_at : few.x_scales_at) =
        static_cast<char*>((of_weights ? few.w_scales : few.x_scales).data()) + 16;
    EXPECT_THROW(few.multiply(), std::logic_error);
    Product elsewhere;
    (of_weights ? elsewhere.w_scales_at : elsewhere.x_scales_at) = host.data();
    EXPECT_THROW(elsewhere.multiply(), std::logic_error);
  }
}

constexpr std::uint8_t kOne = 0x38;  // 1.0 in e4m3

// 128 ones under one pair of scales and 16 under the other: 128 * 2 * 3 + 16 * 5 * 7 for row 0 of
// x, whose scales lie beside those of the other three rows.
TEST_F(CublasFp8Double, computes_with_the_scales_of_each_block) {
  Product product = Product::of_blocks();
  for (Buffer* matrix : {&product.w, &product.x}) {
    std::ranges::fill(matrix->as<std::uint8_t>(), kOne);
  }
  product.w_scales.as<float>()[0] = 2;
  product.w_scales.as<float>()[1] = 5;
  for (std::size_t i = 0; i < 8; ++i) product.x_scales.as<float>()[i] = 0;
  product.x_scales.as<float>()[0] = 3;
  product.x_scales.as<float>()[4] = 7;
  ASSERT_EQ(product.multiply(), CUBLAS_STATUS_SUCCESS);
  const auto y = product.y.as<std::uint16_t>();
  EXPECT_EQ(y[0], 0x44a6);  // 1328 = 0b10100110 * 8
  EXPECT_EQ(y[16], 0);      // row 1
}

TEST_F(CublasFp8Double, computes_with_one_scale) {
  Product product;
  for (Buffer* matrix : {&product.w, &product.x}) {
    std::ranges::fill(matrix->as<std::uint8_t>(), kOne);
  }
  product.w_scales.as<float>()[0] = 0.5F;
  product.x_scales.as<float>()[0] = 4;
  ASSERT_EQ(product.multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(product.y.as<std::uint16_t>()[63], 0x4390);  // 288
}

}  // namespace
}  // namespace epsweep::cuda
