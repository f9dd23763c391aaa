// What the grouped kernels say on devices and libraries that they are not for.
#include <gtest/gtest.h>

#include "device/grouped_gemm.h"
#include "hostcuda/device.h"

namespace epsweep::cuda {
namespace {

constexpr GemmShape kShape{.num_experts = 2, .n = 16, .k = 16, .dtype = DType::bf16};

std::string refusal(const char* kernel, const GemmShape& shape = kShape) {
  return GroupedGemmCatalog::instance().at(kernel).refuses(shape).value_or("");
}

class GroupedRefusals : public testing::Test {
 protected:
  void TearDown() override {
    hostcuda::set_compute_capability(hostcuda::kComputeCapability);
    hostcuda::set_cublas_version(hostcuda::kCublasVersion);
  }
};

TEST_F(GroupedRefusals, nothing_on_the_device_of_the_doubles) {
  EXPECT_EQ(refusal("cutlass_grouped"), "");
  EXPECT_EQ(refusal("cublaslt_grouped"), "");
}

TEST_F(GroupedRefusals, cutlass_is_for_hopper) {
  hostcuda::set_compute_capability(100);
  EXPECT_NE(refusal("cutlass_grouped").find("this device has 10.0"), std::string::npos);
  EXPECT_EQ(refusal("cublas_grouped"), "");
}

TEST_F(GroupedRefusals, cublaslt_asks_for_the_version_and_the_device) {
  hostcuda::set_cublas_version(130100);
  EXPECT_EQ(refusal("cublaslt_grouped"),
            "wants cuBLAS 13.4.0 on compute capability 9.0, this is 13.1.0");
  hostcuda::set_cublas_version(130600);
  EXPECT_NE(refusal("cublaslt_grouped").find("denied"), std::string::npos);
  hostcuda::set_compute_capability(103);
  EXPECT_EQ(refusal("cublaslt_grouped"), "");
  hostcuda::set_compute_capability(80);
  EXPECT_NE(refusal("cublaslt_grouped").find("this device has 8.0"), std::string::npos);
}

TEST_F(GroupedRefusals, shapes_and_types_come_before_devices) {
  for (const char* kernel : {"cutlass_grouped", "cublaslt_grouped"}) {
    GemmShape shape = kShape;
    shape.dtype = DType::fp32;
    EXPECT_EQ(refusal(kernel, shape), "bf16 only");
    shape = kShape;
    shape.k = 12;
    EXPECT_NE(refusal(kernel, shape).find("not multiples of 16 bytes"), std::string::npos);
  }
}

}  // namespace
}  // namespace epsweep::cuda
