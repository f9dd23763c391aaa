// The host's e4m3 against the conversions of CUDA's header.
#include "base/float8.h"

#include <cmath>

#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include "base/bfloat16.h"

namespace epsweep {
namespace {

std::uint8_t cudas(float value) {
  return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}

TEST(Float8, rounds_every_bf16_number_as_cuda_does) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = float_of_bf16(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(e4m3_of_float(value), cudas(value)) << value;
  }
}

// Halfway between two neighbours, where the even one wins, and the floats beside it.
TEST(Float8, rounds_around_every_boundary_as_cuda_does) {
  for (int code = 0; code < 0x7e; ++code) {
    const float low = float_of_e4m3(static_cast<std::uint8_t>(code)),
                high = float_of_e4m3(static_cast<std::uint8_t>(code + 1));
    const float middle = (low + high) / 2;
    EXPECT_EQ(e4m3_of_float(middle), code + code % 2) << middle;
    for (const float value : {low, std::nextafter(middle, low), middle,
                              std::nextafter(middle, high), std::nextafter(high, low), high}) {
      ASSERT_EQ(e4m3_of_float(value), cudas(value)) << value;
      ASSERT_EQ(e4m3_of_float(-value), cudas(-value)) << -value;
    }
  }
}

TEST(Float8, saturates) {
  EXPECT_EQ(e4m3_of_float(448.0F), 0x7e);
  EXPECT_EQ(e4m3_of_float(1e30F), 0x7e);
  EXPECT_EQ(e4m3_of_float(-INFINITY), 0xfe);
  EXPECT_EQ(e4m3_of_float(-NAN), 0x7f);
}

TEST(Float8, knows_every_number_as_cuda_does) {
  for (unsigned code = 0; code < 256; ++code) {
    const __half_raw half =
        __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code), __NV_E4M3);
    const float want = __half2float(__half(half)),
                got = float_of_e4m3(static_cast<std::uint8_t>(code));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << code;
    } else {
      EXPECT_EQ(got, want) << code;
      EXPECT_EQ(std::signbit(got), std::signbit(want)) << code;
    }
  }
}

}  // namespace
}  // namespace epsweep
