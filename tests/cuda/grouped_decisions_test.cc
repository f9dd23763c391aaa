// What the grouped kernels decide before anything runs: versions, devices, tiles.
#include <vector>

#include <gtest/gtest.h>

#include "cuda/cutlass_choice.h"
#include "cuda/grouped_layout_versions.h"
#include "cuda/optional/cutlass_tile.h"

namespace epsweep::cuda {
namespace {

std::string refusal(int cublas_version, int compute_capability) {
  return refuse_grouped_layouts(cublas_version, compute_capability).value_or("");
}

TEST(GroupedLayoutVersions, hopper_wants_a_release_that_does_not_hang) {
  EXPECT_EQ(refusal(130300, 90), "wants cuBLAS 13.4.0 on compute capability 9.0, this is 13.3.0");
  EXPECT_EQ(refusal(130400, 90),
            "cuBLAS 13.4.0 is denied on compute capability 9.0: grouped products that use a "
            "workspace again may hang before 13.7.0");
  EXPECT_NE(refusal(130601, 90), "");
  EXPECT_EQ(refusal(130700, 90), "");
  EXPECT_EQ(refusal(131000, 90), "");
}

TEST(GroupedLayoutVersions, blackwell_wants_a_release_between_two_defects) {
  EXPECT_EQ(refusal(130200, 100), "wants cuBLAS 13.3.0 on compute capability 10.0, this is 13.2.0");
  for (const int capability : {100, 103, 107, 110}) {
    EXPECT_EQ(refusal(130300, capability), "") << capability;
    EXPECT_EQ(refusal(130601, capability), "") << capability;
    EXPECT_NE(refusal(130700, capability), "") << capability;
  }
  EXPECT_EQ(refusal(130700, 103),
            "cuBLAS 13.7.0 is denied on compute capability 10.3: grouped products can give wrong "
            "results");
  EXPECT_NE(refusal(131000, 100), "");
}

TEST(GroupedLayoutVersions, other_devices_have_none) {
  for (const int capability : {80, 89, 99, 111, 120, 121}) {
    EXPECT_NE(refusal(130700, capability), "") << capability;
  }
  EXPECT_EQ(refusal(130700, 120),
            "cuBLASLt has grouped layouts for compute capability 9.0 and 10.0 to 11.0, this device "
            "has 12.0");
}

TEST(CutlassChoice, only_hopper_runs_its_kernels) {
  EXPECT_FALSE(refuse_all_but_hopper(90));
  EXPECT_EQ(refuse_all_but_hopper(100).value_or(""),
            "wants compute capability 9.0 (H100, H200, H20, GH200), this device has 10.0");
  EXPECT_TRUE(refuse_all_but_hopper(80));
}

TEST(CutlassChoice, counts_tiles_of_every_expert_apart) {
  const std::vector<std::int64_t> rows{0, 1, 16, 17, 128, 129};
  EXPECT_EQ(token_tiles(rows, 16), 0 + 1 + 1 + 2 + 8 + 9);
  EXPECT_EQ(token_tiles(rows, 128), 0 + 1 + 1 + 1 + 1 + 2);
  EXPECT_EQ(token_tiles(std::vector<std::int64_t>{100'000'000'000}, 16), 6'250'000'000);
}

TEST(CutlassChoice, few_rows_are_sixteen_but_for_a_few_experts) {
  const auto choice = [](std::vector<std::int64_t> rows) { return cutlass_rows(rows); };
  EXPECT_EQ(choice({1, 2, 16, 0}), CutlassRows::few);
  EXPECT_EQ(choice({17}), CutlassRows::many);
  EXPECT_EQ(choice({32, 32}), CutlassRows::many);
  // Four experts with one tile each and one with two: six readings of weights against five.
  EXPECT_EQ(choice({1, 1, 1, 1, 32}), CutlassRows::few);
  // One hot expert: 4 + 4 against 5.
  EXPECT_EQ(choice({1, 1, 1, 1, 64}), CutlassRows::many);
  EXPECT_EQ(choice({0, 0}), CutlassRows::few);
}

TEST(CutlassChoice, tiles_are_those_the_kernels_have) {
  if (cutlass_few_rows() == nullptr) GTEST_SKIP() << "built without CUTLASS";
  EXPECT_EQ(cutlass_few_rows()->tokens, kFewTokens);
  EXPECT_EQ(cutlass_many_rows()->tokens, kManyTokens);
}

}  // namespace
}  // namespace epsweep::cuda
