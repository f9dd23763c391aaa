// Expert FFNs of wide EP sizes predicted from narrow ones, against published times.
#include <cstdio>

#include <gtest/gtest.h>

#include "costs/ffn_table.h"
#include "published_times.h"

namespace epsweep {
namespace {

// H800 and one expert of 3 * 7168 * 2048 weights in fp8, by the vendor's figures of H100, which
// H800 shares: 1979e12 operations/s and 3.35e12 bytes/s.
constexpr double kWeights = 3.0 * 7168 * 2048;
constexpr FfnFloor kH800 = {.row_s = 2 * kWeights / 1979e12, .slot_s = kWeights / 3.35e12};

std::vector<FfnSample> published_ffns() {
  std::vector<FfnSample> samples;
  for (const auto& row : published_rows("published_grouped_gemm_times.csv")) {
    samples.push_back({std::stoll(row[0]), std::stod(row[1]), std::stod(row[2]) * 1e-6});
  }
  return samples;
}

struct BackTest {
  int ep_size;
  double median;  // bound
  std::size_t num_cases;
};
// EP4, EP8 and EP16 are 64, 32 and 16 experts on a rank. A roofline fitted to the same points is
// off by 8, 14, 28 and 57 %.
constexpr BackTest kBackTests[] = {{32, 0.08, 6}, {64, 0.08, 6}, {128, 0.20, 6}, {256, 0.30, 6}};

Errors errors_of(int ep_size, const FfnTable& table) {
  Errors errors;
  for (const FfnSample& sample : published_ffns()) {
    if (sample.slots != 256 / ep_size) continue;
    const std::vector<std::int64_t> rows(static_cast<std::size_t>(sample.slots),
                                         static_cast<std::int64_t>(sample.rows_per_slot));
    const TimeForecast forecast = table.forecast(rows)->time;
    errors.add(forecast.seconds, sample.seconds);
    errors.num_covered += forecast.low_s <= sample.seconds && sample.seconds <= forecast.high_s;
  }
  return errors;
}

TEST(FfnBackTest, WideSizesFollowFromNarrowOnes) {
  std::vector<FfnSample> narrow = published_ffns();
  std::erase_if(narrow, [](const FfnSample& sample) { return sample.slots < 16; });
  ASSERT_EQ(narrow.size(), 18U);
  const FfnTable table(narrow, kH800);
  EXPECT_NEAR(table.fixed_s(), 25e-6, 10e-6);  // DeepGEMM's launches and tails
  int covered = 0;
  for (const BackTest& test : kBackTests) {
    const Errors errors = errors_of(test.ep_size, table);
    std::printf(
        "h800_deepgemm_ep%-7d median %4.1f %%, worst %+5.1f %%, %d of %zu in the interval\n",
        test.ep_size, 100 * errors.median_size(), 100 * errors.worst(), errors.num_covered,
        errors.values.size());
    covered += errors.num_covered;
    ASSERT_EQ(errors.values.size(), test.num_cases);
    EXPECT_LE(errors.median_size(), test.median) << "EP" << test.ep_size;
  }
  EXPECT_GE(covered, 24 * 6 / 10);
}

// Half of the measured rows, the rest predicted from their neighbours.
TEST(FfnBackTest, InterpolationMeetsTheKnee) {
  Errors errors;
  for (const std::int64_t slots : {16, 32, 8, 4}) {
    std::vector<FfnSample> all = published_ffns(), even;
    std::erase_if(all, [slots](const FfnSample& sample) { return sample.slots != slots; });
    for (std::size_t i = 0; i < all.size(); i += 2) even.push_back(all[i]);
    const FfnTable table(even, kH800);
    for (std::size_t i = 1; i + 1 < all.size(); i += 2) {
      const std::vector<std::int64_t> rows(static_cast<std::size_t>(slots),
                                           static_cast<std::int64_t>(all[i].rows_per_slot));
      errors.add(table.forecast(rows)->time.seconds, all[i].seconds);
    }
  }
  std::printf("h800_deepgemm between    median %4.1f %%, worst %+5.1f %% of %zu\n",
              100 * errors.median_size(), 100 * errors.worst(), errors.values.size());
  EXPECT_LE(errors.median_size(), 0.06);
  EXPECT_LE(std::abs(errors.worst()), 0.20);  // a sharp max(): 38 %
}

}  // namespace
}  // namespace epsweep
