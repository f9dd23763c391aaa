// Our own grouped GEMM, with each of the codes it may run.
#include "cpu/grouped_gemms/panel_gemm.h"

#include <string>
#include <vector>

#include "cpu/grouped_gemms/packed_grouped_gemm.h"
#include "gemm_case.h"

namespace epsweep {
namespace {

const TileCode kNoTiles{{}, "no tiles in this test"};

struct Code {
  std::string name;
  const TileCode* tiles = nullptr;
};

class PanelGemmTest : public testing::TestWithParam<Code> {
 protected:
  void SetUp() override {
    const std::string& why_not = GetParam().tiles->why_not;
    if (GetParam().name == "tiles" && !why_not.empty()) GTEST_SKIP() << why_not;
  }
  GemmResult result_of(const GemmCase& given, int num_threads) const {
    const auto gemm = make_panel_gemm(given.shape, num_threads, *GetParam().tiles);
    gemm->prepare(given.weights());
    gemm->warm(given.rows);
    return run_gemm(*gemm, given);
  }
};

INSTANTIATE_TEST_SUITE_P(Codes, PanelGemmTest,
                         testing::Values(Code{"tiles", &tile_code()}, Code{"vectors", &kNoTiles}),
                         [](const auto& suite) { return suite.param.name; });

// All heights of tiles, one to three tiles in a block, one to many blocks.
TEST_P(PanelGemmTest, EveryRowCount) {
  std::vector<std::int64_t> rows;
  for (std::int64_t count = 0; count <= 130; ++count) rows.push_back(count);
  const GemmCase given{{static_cast<int>(rows.size()), 70, 64, DType::bf16}, rows};
  expect_correct(given, result_of(given, 2));
}

TEST_P(PanelGemmTest, ManyRows) {
  for (const std::int64_t rows : {287, 288, 289, 600, 5000}) {
    const GemmCase given{{3, 34, 33, DType::bf16}, {0, rows, 1}};
    expect_correct(given, result_of(given, 2));
  }
}

// More than fits a cache beside its rows: k is cut into parts.
TEST_P(PanelGemmTest, LongRows) {
  const GemmCase given{{2, 40, 4500, DType::bf16}, {200, 3}};
  expect_correct(given, result_of(given, 1));
}

// Columns of the last panel and rows that are no multiple of anything, in several pieces.
TEST_P(PanelGemmTest, OddSizes) {
  for (const std::int64_t n : {1, 31, 33, 545, 1025}) {
    for (const std::int64_t k : {1, 2, 31, 33, 97}) {
      const GemmCase given{{4, n, k, DType::bf16}, {5, 0, 17, 49}};
      expect_correct(given, result_of(given, 2));
    }
  }
}

// A row's bits depend neither on the other rows nor on the threads.
TEST_P(PanelGemmTest, RowsAreIndependent) {
  const GemmCase all{{1, 96, 4500, DType::bf16}, {290}};
  const GemmResult expected = result_of(all, 2);
  for (const std::int64_t rows : {1, 16, 20, 33, 60, 200}) {
    const GemmCase some{all.shape, {rows}};
    const GemmResult result = result_of(some, 1);
    EXPECT_EQ(
        std::memcmp(result.y.data(), expected.y.data(), static_cast<std::size_t>(rows * 96 * 2)), 0)
        << rows << " rows";
  }
}

TEST_P(PanelGemmTest, SaysWhichCodeRan) {
  const GemmCase given{{1, 32, 32, DType::bf16}, {3}};
  const GemmWork work = result_of(given, 1).work;
  ASSERT_NE(work.choice, nullptr);
  EXPECT_EQ(work.choice->chosen, GetParam().name);
  EXPECT_EQ(work.choice->candidates.size(), GetParam().name == "tiles" ? 0U : 1U);
  if (!work.choice->candidates.empty()) {
    EXPECT_EQ(work.choice->candidates[0].left_out, kNoTiles.why_not);
  }
  EXPECT_EQ(work.kernel_calls, 1);
}

// 49 rows are four tiles of 13: three rows are multiplied twice.
TEST(PanelGemm, CountsRowsThatItMultipliesTwice) {
  if (!tile_code().why_not.empty()) GTEST_SKIP() << tile_code().why_not;
  const GemmCase given{{2, 64, 32, DType::bf16}, {49, 16}};
  const auto gemm = make_panel_gemm(given.shape, 1, tile_code());
  gemm->prepare(given.weights());
  const GemmWork work = run_gemm(*gemm, given).work;
  EXPECT_EQ(work.computed_rows, 52 + 16);
  EXPECT_EQ(work.stored_rows, 49 + 16);
}

// Sums of 16 panels and 7 blocks of 6 KiB, for each of two threads; k = 40 is copied to rows of 64.
TEST(PanelGemm, CountsItsWorkspace) {
  if (!tile_code().why_not.empty()) GTEST_SKIP() << tile_code().why_not;
  const GemmCase given{{1, 64, 40, DType::bf16}, {200}};
  const auto gemm = make_panel_gemm(given.shape, 2, tile_code());
  gemm->prepare(given.weights());
  EXPECT_EQ(run_gemm(*gemm, given).work.workspace_bytes, 2 * (7 * 16 * 6144 + 200 * 64 * 2));
}

// One copy of 2.1 GiB of weights, as both kernels read it: the last expert begins behind 2^31
// bytes.
TEST(PanelGemm, WeightsPastTwoGibibytes) {
  constexpr int kExperts = 34;
  constexpr std::int64_t kRows = 3;
  const GemmShape shape{kExperts, 4096, 8192, DType::bf16};
  const auto source = [](int expert) { return GemmCase::stream(Stream::expert_down, expert); };
  auto weights = std::make_shared<WeightPanels>(shape);
  ASSERT_GT((kExperts - 1) * weights->expert_bytes(), std::int64_t{1} << 31);
  ThreadPool pool(2);
  weights->load(source, pool);
  std::vector<std::int64_t> rows(kExperts, 0);
  rows.back() = kRows;
  const GemmCase last{{1, shape.n, shape.k, DType::bf16}, {kRows}};
  const Buffer x = last.input();

  const auto own = make_panel_gemm(shape, 2, tile_code());
  own->share(weights);
  GemmResult result{last.output(), {}};
  own->run(*inline_lane(), x, result.y, rows);
  const std::vector<float> w = GemmCase::values(source(kExperts - 1), shape.n * shape.k);
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{31}, shape.n - 1}) {
    double sum = 0, magnitude = 0;
    for (std::int64_t k = 0; k < shape.k; ++k) {
      const double product = static_cast<double>(element_of(x, DType::bf16, k)) *
                             static_cast<double>(w[static_cast<std::size_t>(n * shape.k + k)]);
      sum += product;
      magnitude += std::abs(product);
    }
    EXPECT_NEAR(static_cast<double>(element_of(result.y, DType::bf16, n)), sum,
                std::abs(sum) * 0x1p-7 + magnitude * 0x1p-11)
        << n;
  }

  if (const auto reason = PackedGemm::refuses(shape)) GTEST_SKIP() << *reason;
  PackedGroupedGemm onednn(shape, 2, ExpertOrder::together);
  if (!onednn.packed().takes_panels()) GTEST_SKIP() << "oneDNN has a layout of its own here";
  onednn.packed().share(weights);
  GemmResult other{last.output(), {}};
  onednn.run(*inline_lane(), x, other.y, rows);
  for (std::int64_t i = 0; i < kRows * shape.n; ++i) {
    const auto ours = static_cast<double>(element_of(result.y, DType::bf16, i));
    ASSERT_NEAR(static_cast<double>(element_of(other.y, DType::bf16, i)), ours,
                std::abs(ours) * 0x1p-6 + 0x1p-6)
        << i;
  }
}

}  // namespace
}  // namespace epsweep
