// Conformance of every CPU entry of the catalog.
#include <string>
#include <tuple>
#include <vector>

#include "gemm_case.h"

namespace epsweep {
namespace {

std::vector<std::string> cpu_kernels() {
  std::vector<std::string> names;
  for (const std::string& name : GroupedGemmCatalog::instance().names()) {
    if (GroupedGemmCatalog::instance().at(name).backend == "cpu") names.push_back(name);
  }
  return names;
}

using Parameters = std::tuple<std::string, DType, int>;

class GroupedGemmConformance : public testing::TestWithParam<Parameters> {
 protected:
  void check(std::int64_t n, std::int64_t k, const std::vector<std::vector<std::int64_t>>& cases) {
    const auto& [name, dtype, num_threads] = GetParam();
    GemmCase given{{static_cast<int>(cases.front().size()), n, k, dtype}, {}};
    const auto& entry = GroupedGemmCatalog::instance().at(name);
    if (const auto reason = entry.refuses(given.shape)) GTEST_SKIP() << *reason;
    const auto gemm = prepared(name, given, num_threads);
    EXPECT_GE(gemm->weight_bytes(), given.shape.num_experts * n * k * bytes_of(dtype));
    for (const std::vector<std::int64_t>& rows : cases) {
      SCOPED_TRACE(testing::Message()
                   << "n " << n << " k " << k << " rows " << testing::PrintToString(rows));
      given.rows = rows;
      gemm->warm(rows);
      const GemmResult result = run_gemm(*gemm, given);
      expect_correct(given, result);
      if (name == "padded") {
        const std::int64_t padded_rows =
            given.shape.num_experts * *std::max_element(rows.begin(), rows.end());
        EXPECT_EQ(result.work.computed_rows, padded_rows);
        EXPECT_EQ(result.work.stored_rows, padded_rows);
      } else {
        // The own kernel multiplies rows of an uneven block twice.
        EXPECT_GE(result.work.computed_rows, given.total_rows());
        EXPECT_LE(result.work.computed_rows, given.total_rows() * 17 / 16);
        EXPECT_EQ(result.work.stored_rows, given.total_rows());
      }
      EXPECT_EQ(result.work.kernel_calls == 0, given.total_rows() == 0);
    }
  }
};

TEST_P(GroupedGemmConformance, RowCounts) {
  check(64, 96, {{0, 0, 0, 0}, {1, 1, 1, 1}, {0, 5, 3, 0}, {7, 0, 0, 33}, {0, 0, 37, 0}});
}
TEST_P(GroupedGemmConformance, ManyRowsInOneExpert) {
  check(64, 64, {{1100, 0, 2}, {0, 3, 513}});
}
TEST_P(GroupedGemmConformance, OddSizes) {
  check(37, 51, {{1, 2, 0}, {17, 0, 5}});
  check(300, 70, {{3, 0, 20}, {1, 1, 1}});
  check(1, 1, {{1, 2, 0}});
  check(17, 257, {{65, 1, 2}});
}
TEST_P(GroupedGemmConformance, SeveralSlices) {
  check(832, 128, {{1, 4, 0, 9, 64}});
}

TEST_P(GroupedGemmConformance, WithoutWarmAndAfterFlush) {
  const auto& [name, dtype, num_threads] = GetParam();
  const GemmCase given{{3, 96, 64, dtype}, {2, 11, 3}};
  const auto& entry = GroupedGemmCatalog::instance().at(name);
  if (const auto reason = entry.refuses(given.shape)) GTEST_SKIP() << *reason;
  const auto gemm = prepared(name, given, num_threads);
  expect_correct(given, run_gemm(*gemm, given));
  gemm->flush_weights();
  expect_correct(given, run_gemm(*gemm, given));
}

INSTANTIATE_TEST_SUITE_P(Catalog, GroupedGemmConformance,
                         testing::Combine(testing::ValuesIn(cpu_kernels()),
                                          testing::Values(DType::bf16, DType::fp32),
                                          testing::Values(1, 2)),
                         [](const auto& suite) {
                           return std::get<0>(suite.param) + "_" +
                                  std::string(to_string(std::get<1>(suite.param))) + "_" +
                                  std::to_string(std::get<2>(suite.param));
                         });

TEST(GroupedGemmCatalogTest, HoldsTheCpuKernels) {
  EXPECT_EQ(cpu_kernels(),
            (std::vector<std::string>{"amx", "auto_cpu", "loop", "onednn", "padded", "reference"}));
}

// With the library's own scratchpad, two threads inside one primitive corrupt most experts here and
// nothing reports it. The same code on one thread must give the same bits.
TEST(OneDnn, ConcurrentExpertsDoNotDisturbEachOther) {
  for (const std::int64_t rows : {1, 8, 128}) {
    for (const DType dtype : {DType::bf16, DType::fp32}) {
      const GemmCase given{{32, 512, 512, dtype}, std::vector<std::int64_t>(32, rows)};
      if (GroupedGemmCatalog::instance().at("onednn").refuses(given.shape)) continue;
      const auto alone = prepared("onednn", given, 1);
      const GemmResult expected = run_gemm(*alone, given);
      for (const int num_threads : {2, 4}) {
        const auto gemm = prepared("onednn", given, num_threads);
        for (int repeat = 0; repeat < 3; ++repeat) {
          const GemmResult result = run_gemm(*gemm, given);
          EXPECT_EQ(std::memcmp(result.y.data(), expected.y.data(),
                                static_cast<std::size_t>(expected.y.bytes())),
                    0)
              << rows << " rows, " << to_string(dtype) << ", " << num_threads << " threads";
        }
      }
    }
  }
}

TEST(Loop, CallsOncePerExpertWithRows) {
  const GemmCase given{{4, 640, 64, DType::fp32}, {0, 700, 1, 5}};
  EXPECT_EQ(run_gemm(*prepared("loop", given, 1), given).work.kernel_calls, 3);
  EXPECT_EQ(run_gemm(*prepared("loop", given, 2), given).work.kernel_calls, 6);
}

// Two threads hold a tile of 700 rows of half the columns each, and scratch of 64 bytes or more.
TEST(Loop, CountsItsWorkspace) {
  const GemmCase given{{4, 640, 64, DType::fp32}, {0, 700, 1, 5}};
  const std::int64_t two = run_gemm(*prepared("loop", given, 2), given).work.workspace_bytes;
  EXPECT_GE(two, 2 * (700 * 320 * 4 + 64));
  EXPECT_LT(two, 3 * 700 * 320 * 4);
  EXPECT_LT(run_gemm(*prepared("loop", given, 1), given).work.workspace_bytes, 1 << 20);
  EXPECT_EQ(run_gemm(*prepared("reference", given, 2), given).work.workspace_bytes, 0);
}

// 7 rows for each of three experts: 21 rows of 96 and of 64 fp32 values, beside what the products
// need; two copies beside the products' calls.
TEST(Padded, CountsItsCopies) {
  const GemmCase given{{3, 64, 96, DType::fp32}, {7, 0, 2}}, equal{given.shape, {7, 7, 7}};
  if (const auto reason = GroupedGemmCatalog::instance().at("padded").refuses(given.shape)) {
    GTEST_SKIP() << *reason;
  }
  const GemmWork work = run_gemm(*prepared("padded", given, 1), given).work;
  const GemmWork products = run_gemm(*prepared("onednn", equal, 1), equal).work;
  EXPECT_EQ(work.workspace_bytes, products.workspace_bytes + 21 * (96 + 64) * 4);
  EXPECT_EQ(work.kernel_calls, products.kernel_calls + 2);
  EXPECT_EQ(GroupedGemmCatalog::instance().at("padded").scratch_bytes(given.shape, given.rows),
            21 * (96 + 64) * 4);
}

// A row's result must not depend on how many rows there are or where it lies.
TEST(Reference, IsBitEqualWhateverTheOtherRows) {
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    const GemmCase all{{2, 33, 70, dtype}, {5, 4}};
    const std::int64_t x_bytes = 70 * bytes_of(dtype), y_bytes = 33 * bytes_of(dtype);
    const auto gemm = prepared("reference", all, 2);
    const Buffer x = all.input();
    const GemmResult expected = run_gemm(*gemm, all);
    // Expert 0 gets its rows 4, 1; expert 1 its rows 2, 0, 3.
    const std::vector<std::int64_t> source = {4, 1, 7, 5, 8}, rows = {2, 3};
    Buffer some = make_cpu_buffer(x.bytes()), y = all.output();
    for (std::size_t i = 0; i < source.size(); ++i) {
      std::memcpy(some.as<char>().data() + static_cast<std::int64_t>(i) * x_bytes,
                  x.as<char>().data() + source[i] * x_bytes, static_cast<std::size_t>(x_bytes));
    }
    gemm->run(*inline_lane(), some, y, rows);
    for (std::size_t i = 0; i < source.size(); ++i) {
      EXPECT_EQ(std::memcmp(y.as<char>().data() + static_cast<std::int64_t>(i) * y_bytes,
                            expected.y.as<char>().data() + source[i] * y_bytes,
                            static_cast<std::size_t>(y_bytes)),
                0);
    }
  }
}

}  // namespace
}  // namespace epsweep
