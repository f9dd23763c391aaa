// What kernels say to e4m3 on devices and libraries that have none, or not its scales.
#include <gmock/gmock.h>

#include "cuda/fp8_support.h"
#include "hostcuda/device.h"

namespace epsweep::cuda {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& kernel, DType dtype, std::int64_t k = 32) {
  const GemmShape shape{.num_experts = 2, .n = 16, .k = k, .dtype = dtype};
  return GroupedGemmCatalog::instance().at(kernel).refuses(shape).value_or("");
}

class Fp8Refusals : public testing::Test {
 protected:
  void TearDown() override {
    hostcuda::set_compute_capability(hostcuda::kComputeCapability);
    hostcuda::set_cublas_version(hostcuda::kCublasVersion);
  }
};

TEST_F(Fp8Refusals, loops_and_auto_take_both_scalings_on_hopper) {
  for (const DType dtype : {DType::fp8, DType::fp8_block128}) {
    for (const char* kernel : {"cublaslt_loop", "cublaslt_loop_4_streams", "auto"}) {
      EXPECT_EQ(refusal(kernel, dtype), "") << kernel;
    }
  }
  EXPECT_EQ(refusal("cublaslt_padded", DType::fp8), "");
  EXPECT_THAT(refusal("cublaslt_padded", DType::fp8_block128), HasSubstr("in a batch"));
}

TEST_F(Fp8Refusals, others_say_why_not) {
  for (const DType dtype : {DType::fp8, DType::fp8_block128}) {
    for (const char* kernel : {"gemv", "cutlass_grouped", "cublaslt_grouped"}) {
      EXPECT_EQ(refusal(kernel, dtype), "bf16 only") << kernel;
    }
    for (const char* kernel : {"cublas_grouped", "cublas_padded_128"}) {
      EXPECT_THAT(refusal(kernel, dtype), HasSubstr("have no fp8")) << kernel;
    }
  }
}

TEST_F(Fp8Refusals, devices_without) {
  hostcuda::set_compute_capability(80);
  EXPECT_EQ(refusal("cublaslt_loop", DType::fp8),
            "fp8 wants compute capability 8.9, this device has 8.0");
  EXPECT_THAT(refusal("auto", DType::fp8), HasSubstr("cublaslt_loop: fp8 wants"));
  EXPECT_EQ(refusal("cublaslt_loop", DType::bf16), "");
  hostcuda::set_compute_capability(89);
  EXPECT_EQ(refusal("cublaslt_padded", DType::fp8), "");
  for (const int capability : {89, 100, 120}) {
    hostcuda::set_compute_capability(capability);
    EXPECT_EQ(refusal("cublaslt_loop", DType::fp8), "");
    EXPECT_THAT(refusal("cublaslt_loop", DType::fp8_block128),
                HasSubstr("for compute capability 9.0 only"));
  }
}

TEST_F(Fp8Refusals, a_cublas_without_scales_of_128) {
  hostcuda::set_cublas_version(120805);
  EXPECT_EQ(refusal("cublaslt_loop", DType::fp8_block128),
            "scales of 1x128 and 128x128 want cuBLAS 12.9, this is 12.8");
  EXPECT_EQ(refusal("cublaslt_loop", DType::fp8), "");
}

TEST_F(Fp8Refusals, rows_that_are_no_multiples_of_16_bytes) {
  EXPECT_THAT(refusal("cublaslt_loop", DType::fp8, 24), HasSubstr("multiples of 16 bytes"));
  EXPECT_EQ(refusal("cublaslt_loop", DType::bf16, 24), "");
}

TEST(Fp8Support, by_number) {
  EXPECT_FALSE(refuse_fp8(DType::bf16, 70, 0));
  EXPECT_FALSE(refuse_fp8(DType::fp8, 89, 110000));
  EXPECT_TRUE(refuse_fp8(DType::fp8, 86, 130000));
  EXPECT_FALSE(refuse_fp8(DType::fp8_block128, 90, 120900));
  EXPECT_TRUE(refuse_fp8(DType::fp8_block128, 90, 120899));
  EXPECT_TRUE(refuse_fp8(DType::fp8_block128, 100, 130000));
}

}  // namespace
}  // namespace epsweep::cuda
