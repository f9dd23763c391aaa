#include "pipeline/dtype_refusal.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

TEST(DTypeRefusal, names_what_the_backend_has) {
  BackendInfo backend;
  backend.name = "cpu";
  backend.dtypes = {DType::bf16, DType::fp32};
  EXPECT_FALSE(dtype_refusal(DType::fp32, backend));
  EXPECT_EQ(dtype_refusal(DType::fp8_block128, backend).value_or(""),
            "dtype fp8_block128: backend cpu computes in bf16, fp32 only");
}

}  // namespace
}  // namespace epsweep
