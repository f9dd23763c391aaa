// The study itself, on doubles: what it counts, and that every kernel goes through it.
#include "ffn_study.h"

#include <gmock/gmock.h>

namespace epsweep {
namespace {

TEST(FfnStudy, CountsWhatMustMove) {
  // Per row x 4, gate beside up 4 written and read, activated 2 written and read, y 4.
  const FfnNeed need = ffn_need({.hidden = 4, .ffn = 2, .experts = 3, .dtype = DType::bf16}, 5);
  EXPECT_EQ(need.bytes, 2 * (3 * 3 * 4 * 2 + 15 * (4 + 2 * 4 + 2 * 2 + 4)));
  EXPECT_EQ(need.flops, 6 * 4 * 2 * 15);
  EXPECT_EQ(need.roof_s({.copy_bytes_per_s = 1, .gemm_flops = 1}), need.bytes);
  EXPECT_EQ(need.roof_s({.copy_bytes_per_s = 100, .gemm_flops = 1}), need.flops);
}

// A byte for a weight, two for what lies in rows.
TEST(FfnStudy, Fp8HasSmallerWeightsOnly) {
  for (const DType dtype : {DType::fp8, DType::fp8_block128}) {
    const FfnNeed need = ffn_need({.hidden = 4, .ffn = 2, .experts = 3, .dtype = dtype}, 5);
    EXPECT_EQ(need.bytes, 3 * 3 * 4 * 2 + 2 * 15 * (4 + 2 * 4 + 2 * 2 + 4));
    EXPECT_EQ(need.flops, 6 * 4 * 2 * 15);
  }
}

TEST(FfnStudy, NoRowsNeedNothing) {
  EXPECT_EQ(ffn_need({.hidden = 4, .ffn = 2, .experts = 3}, 0).bytes, 0);
}

TEST(FfnStudy, TimesEveryKernelOrSaysWhyNot) {
  const auto backend = BackendCatalog::instance().at("cuda").make({});
  for (const DType dtype : {DType::bf16, DType::fp8, DType::fp8_block128}) {
    const FfnShape shape{.hidden = 64, .ffn = 32, .experts = 2, .dtype = dtype};
    int measured = 0;
    for (const std::string& name : GroupedGemmCatalog::instance().names()) {
      if (GroupedGemmCatalog::instance().at(name).backend != "cuda") continue;
      const int before = measured;
      for (const FfnTime& time : time_kernel(*backend, shape, name, {1, 3}, 2)) {
        EXPECT_NE(time.median_s.has_value(), !time.refusal.empty()) << name << " " << time.refusal;
        if (!time.median_s) continue;
        ++measured;
        EXPECT_GE(time.computed_rows, 2 * time.rows_per_expert) << name;
        EXPECT_GE(time.kernel_calls, 3) << name;
      }
      if (measured > before) run_in_range(*backend, shape, name, 2);
    }
    EXPECT_GE(measured, dtype == DType::bf16 ? 10 : 6) << to_string(dtype);
  }
}

TEST(FfnStudy, ShapesAKernelRefusesHaveItsReason) {
  const auto backend = BackendCatalog::instance().at("cuda").make({});
  // Rows of 5 elements are not multiples of 16 bytes.
  for (const FfnTime& time :
       time_kernel(*backend, {.hidden = 5, .ffn = 16, .experts = 1}, "cublaslt_loop", {1}, 1)) {
    EXPECT_FALSE(time.median_s);
    EXPECT_THAT(time.refusal, testing::HasSubstr("multiples of 16 bytes"));
  }
}

}  // namespace
}  // namespace epsweep
