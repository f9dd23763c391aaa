// The kernel that picks for every expert.
#include <string>
#include <vector>

#include "gemm_case.h"

namespace epsweep {
namespace {

// Which kernel is faster is the machine's affair; what it says about it must fit what it did.
TEST(AutoCpu, SaysWhatItMeasuredAndTook) {
  const GemmCase given{{5, 64, 96, DType::fp32}, {1, 0, 9, 300, 2}};
  const auto gemm = prepared("auto_cpu", given, 2);
  gemm->warm(given.rows);
  const GemmResult result = run_gemm(*gemm, given);
  expect_correct(given, result);
  const GemmChoice& choice = *result.work.choice;
  ASSERT_EQ(choice.candidates.size(), 2U);
  EXPECT_EQ(choice.candidates[0].name, "amx");
  EXPECT_EQ(choice.candidates[1].name, "onednn");
  EXPECT_GT(choice.candidates[0].us.value_or(0), 0);
  EXPECT_EQ(choice.candidates[1].us.has_value(), choice.candidates[1].left_out.empty());
  EXPECT_TRUE(choice.chosen == "amx" || choice.chosen == "onednn" ||
              choice.chosen == "amx+onednn")
      << choice.chosen;
  EXPECT_EQ(result.work.stored_rows, 312);
}

// The table is per number of rows: the same rows in another order are taken the same way.
TEST(AutoCpu, ChoosesByRowsAlone) {
  const GemmCase given{{3, 64, 96, DType::bf16}, {1, 40, 7}}, turned{given.shape, {7, 1, 40}};
  const auto gemm = prepared("auto_cpu", given, 1);
  const GemmResult one = run_gemm(*gemm, given), other = run_gemm(*gemm, turned);
  expect_correct(turned, other);
  EXPECT_EQ(one.work.choice->chosen, other.work.choice->chosen);
  EXPECT_EQ(one.work.kernel_calls, other.work.kernel_calls);
  EXPECT_DOUBLE_EQ(one.work.choice->candidates[0].us.value(),
                   other.work.choice->candidates[0].us.value());
}

TEST(AutoCpu, NoRowsIsNoWork) {
  const GemmCase given{{2, 32, 32, DType::bf16}, {0, 0}};
  const auto gemm = prepared("auto_cpu", given, 1);
  gemm->warm(given.rows);
  const GemmWork work = run_gemm(*gemm, given).work;
  EXPECT_EQ(work.kernel_calls, 0);
  EXPECT_EQ(work.choice, nullptr);
}

}  // namespace
}  // namespace epsweep
