#include "report/pass_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace epsweep {
namespace {

using testing::HasSubstr;

PassSummary summary_of(const std::vector<double>& samples, std::vector<double> disturbed = {}) {
  PassFactsOfRanks facts;
  facts.disturbed = std::move(disturbed);
  return summarize_pass(std::move(facts), samples);
}

// Case C34.
TEST(PassSummary, AFirstSpikeIsToldAndStays) {
  const std::vector<double> samples = {214477e-6, 14e-6, 5e-6, 3e-6, 4e-6, 5e-6, 4e-6, 4e-6};
  const PassSummary pass = summary_of(samples);
  EXPECT_DOUBLE_EQ(*pass.first_over_p50, 214477.0 / 4);
  const auto warnings = pass_warnings("aligned stages", pass, samples);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("aligned stages: the first timed iteration took 214477.0 us"));
  EXPECT_TRUE(pass_warnings("", summary_of({4, 5, 4, 5}), samples).empty());
  EXPECT_FALSE(summary_of({100, 1, 1}).first_over_p50.has_value());
}

// Thirds of six: 1 to 1.05 first, 1.2 to 1.25 last.
TEST(PassSummary, ADriftIsToldWhereIntervalsDoNotOverlap) {
  std::vector<double> samples;
  for (int i = 0; i < 18; ++i) samples.push_back(1 + (i / 6) * 0.1 + (i % 6) * 0.01);
  const PassSummary pass = summary_of(samples);
  ASSERT_TRUE(pass.drift.has_value());
  EXPECT_NEAR(*pass.drift, 1.22 / 1.02, 1e-12);
  ASSERT_EQ(pass_warnings("chained layers", pass, samples).size(), 1U);
  samples.back() = 1;  // now the last third reaches into the first
  EXPECT_FALSE(summary_of(samples).drift.has_value());
  samples.pop_back();
  EXPECT_FALSE(summary_of(samples).drift.has_value());
}

TEST(PassSummary, DisturbedIterationsAreCountedNotDropped) {
  const PassSummary pass = summary_of({1, 9, 1, 9}, {0, 2, 0, 1});
  EXPECT_DOUBLE_EQ(pass.disturbed_share, 0.5);
  EXPECT_DOUBLE_EQ(*pass.undisturbed_p50_s, 1);
  EXPECT_FALSE(summary_of({1, 2}, {1, 1}).undisturbed_p50_s.has_value());
}

}  // namespace
}  // namespace epsweep
