#include "report/verdict.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "report/tables.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using Times = std::vector<double>;

// Case C33.
TEST(Verdict, OverlapShowsNoDifference) {
  EXPECT_EQ(difference_text("EP32", "EP8", Times{100, 101, 99}, Times{98, 104, 100}),
            "EP32 against EP8: no difference shown (98.0-104.0 against 99.0-101.0 us, 3 and 3 "
            "repeats)");
}

// Apart by chance in 1 of 10 pairs of three and three, in 1 of 35 of four and four.
TEST(Verdict, ThreeRepeatsThatDoNotOverlapAreTooFew) {
  EXPECT_EQ(difference_between(Times{1, 2, 3}, Times{4, 5, 6}).shown, Shown::too_few);
  const Difference slower = difference_between(Times{1, 2, 3, 3}, Times{4, 5, 6, 7});
  EXPECT_EQ(slower.shown, Shown::slower);
  EXPECT_DOUBLE_EQ(slower.ratio, 2.5);
  EXPECT_EQ(difference_between(Times{4, 5, 6, 7}, Times{1, 2, 3, 3}).shown, Shown::faster);
  EXPECT_EQ(difference_between(Times{1}, Times{2}).shown, Shown::too_few);
  EXPECT_THROW(difference_between(Times{}, Times{2}), RunError);
}

// From six repeats on one outlier no longer hides what the others show: nine values give the second
// to the eighth.
TEST(Verdict, ManyRepeatsUseTheIntervalOfTheMedian) {
  const Times a = {1, 1, 1, 1, 1, 1, 1, 1, 9}, b = {2, 2, 2, 2, 2, 2, 2, 2, 2};
  const Difference difference = difference_between(a, b);
  EXPECT_EQ(difference.shown, Shown::slower);
  EXPECT_DOUBLE_EQ(difference.a.high, 1);
}

Json record_of(int ep_size, int repeat, double layer_us) {
  SweepPoint point = testing::sample_point(ep_size, 8);
  point.repeat = repeat;
  PointRecordInput input = testing::measured_input(point);
  input.timings->chain =
      summarize_chain(testing::even_chains(ep_size, point.iterations, layer_us * 1e-6));
  return make_point_record(input);
}

TEST(Verdict, ReportComparesEpSizesThatWereRepeated) {
  RunData run{.dir = "results/a", .run = {{"identity", "x"}}, .points = {}};
  for (int repeat = 0; repeat < 4; ++repeat) {
    run.points.push_back(record_of(2, repeat, 100 + repeat));
    run.points.push_back(record_of(4, repeat, 90 + repeat));
  }
  const std::string text = report_text({run});
  EXPECT_NE(text.find("  fixed_global 8: EP4 against EP2: 9.9 % faster (90.0-93.0 against "
                      "100.0-103.0 us, 4 and 4 repeats)\n"),
            std::string::npos)
      << text;
  run.points.resize(2);  // one run each says nothing about repeats
  EXPECT_EQ(report_text({run}).find("Repeats"), std::string::npos);
}

}  // namespace
}  // namespace epsweep
