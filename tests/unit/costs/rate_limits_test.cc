#include "costs/rate_limits.h"

#include <gmock/gmock.h>

namespace epsweep {
namespace {

using testing::HasSubstr;
using testing::Not;

RateClaim claim(double rate, double limit, LimitSource source) {
  return {.what = "expert_ffn of rank 3 computes",
          .rate = rate,
          .limit = limit,
          .limit_name = "the limit",
          .unit = "FLOP",
          .source = source};
}

TEST(RateLimits, MeasuredCeilingsHaveAnAllowanceAndDeclaredPeaksHaveNone) {
  EXPECT_FALSE(claim(109e9, 100e9, LimitSource::measured).impossible());
  EXPECT_TRUE(claim(111e9, 100e9, LimitSource::measured).impossible());
  EXPECT_FALSE(claim(100e9, 100e9, LimitSource::declared).impossible());
  EXPECT_TRUE(claim(100.1e9, 100e9, LimitSource::declared).impossible());
}

TEST(RateLimits, TheWorstOneIsNamed) {
  EXPECT_FALSE(worst_impossible({}));
  EXPECT_FALSE(worst_impossible({claim(1, 1, LimitSource::measured)}));
  const auto worst =
      worst_impossible({claim(3, 2, LimitSource::measured), claim(4, 2, LimitSource::declared),
                        claim(9, 6, LimitSource::declared)});
  ASSERT_TRUE(worst);
  EXPECT_EQ(worst->rate, 4);
}

TEST(RateLimits, TheReasonHasBothNumbers) {
  const std::string measured = impossible_text(claim(120e9, 100e9, LimitSource::measured));
  EXPECT_THAT(measured,
              HasSubstr("rank 3 computes 120 GFLOP/s, above the 100 GFLOP/s of the limit"));
  EXPECT_THAT(measured, HasSubstr("10 %"));
  EXPECT_THAT(impossible_text(claim(120e9, 100e9, LimitSource::declared)), Not(HasSubstr("%")));
}

}  // namespace
}  // namespace epsweep
