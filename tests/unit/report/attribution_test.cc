// Differences that add up, and causes that are found where they were put.
#include "report/attribution.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"

namespace epsweep {
namespace {

// Parts 10, 5, 10, 60, 200, 20, 0, 60, 10 us and nothing left: 375 us.
Breakdown base() {
  Breakdown b{.period_us = 375, .parts_us = {10, 5, 10, 60, 200, 20, 0, 60, 10, 0}, .model = {}};
  b.model = {.weight_us = 180,
             .compute_us = 60,
             .skew_floor_us = 5,
             .alpha_us = 10,
             .row_us = 0.1,
             .mean_rows = 400,
             .rows = 500,
             .dedup = 1};
  return b;
}

Breakdown changed(LayerPart part, double us) {
  Breakdown b = base();
  b.at(part) += us;
  b.period_us += us;
  return b;
}

void expect_only(const Terms& terms, Cause cause, double us) {
  for (std::size_t i = 0; i < kNumCauses; ++i) {
    EXPECT_NEAR(terms.values()[i], static_cast<Cause>(i) == cause ? us : 0, 1e-9) << kCauseNames[i];
  }
}

TEST(Terms, AreAllZeroBetweenEqualPoints) {
  expect_only(terms_between(base(), base()), Cause::residual, 0);
}

TEST(Terms, FindThePartThatChanged) {
  expect_only(terms_between(base(), changed(LayerPart::router, 7)), Cause::overhead, 7);
  expect_only(terms_between(base(), changed(LayerPart::count_exchange, 7)), Cause::overhead, 7);
  expect_only(terms_between(base(), changed(LayerPart::uneven, 7)), Cause::host, 7);
  expect_only(terms_between(base(), changed(LayerPart::ffn_rows, 7)), Cause::skew, 7);
  expect_only(terms_between(base(), changed(LayerPart::ffn_typical, 7)), Cause::expert_kernel, 7);
  expect_only(terms_between(base(), changed(LayerPart::dispatch, 7)), Cause::dispatch_off_line, 7);
  expect_only(terms_between(base(), changed(LayerPart::combine, 7)), Cause::combine_off_line, 7);
  expect_only(terms_between(base(), changed(LayerPart::residual, 7)), Cause::residual, 7);
}

TEST(Terms, HalfTheWeightsAreWeightTrafficUntilOperationsBind) {
  Breakdown half = changed(LayerPart::ffn_typical, -90);
  half.model.weight_us = 90;
  expect_only(terms_between(base(), half), Cause::weight_traffic, -90);
  // 180 -> 30 us of weights under 60 us of operations: the roofline falls by 120 us only, and
  // operations alone would have changed nothing.
  Breakdown bound = changed(LayerPart::ffn_typical, -120);
  bound.model.weight_us = 30;
  expect_only(terms_between(base(), bound), Cause::weight_traffic, -120);
  // Operations that come to bind while weights fall: the roofline goes from 180 to 200 us. Weights
  // do -120 before and 0 after the operations rose, operations +20 before and +140 after.
  Breakdown both = changed(LayerPart::ffn_typical, 20);
  both.model.weight_us = 30;
  both.model.compute_us = 200;
  const Terms terms = terms_between(base(), both);
  EXPECT_NEAR(terms.at(Cause::weight_traffic), -60, 1e-9);
  EXPECT_NEAR(terms.at(Cause::expert_compute), 80, 1e-9);
  EXPECT_NEAR(terms.at(Cause::expert_kernel), 0, 1e-9);
}

TEST(Terms, TheFloorIsNotBlamedOnTheRouter) {
  Breakdown few_rows = changed(LayerPart::ffn_rows, 12);
  few_rows.model.skew_floor_us = 17;
  expect_only(terms_between(base(), few_rows), Cause::skew_floor, 12);
}

// dispatch = 10 us + 0.1 us * 500 rows.
TEST(Terms, ExchangesComeApartIntoAlphaBytesCopiesAndSkew) {
  Breakdown b = changed(LayerPart::dispatch, 15);
  b.model.alpha_us = 25;
  Terms terms = terms_between(base(), b);
  EXPECT_NEAR(terms.at(Cause::dispatch_alpha), 15, 1e-9);
  EXPECT_NEAR(terms.at(Cause::dispatch_off_line), 0, 1e-9);
  // Combine has the same line, but did not become slower.
  EXPECT_NEAR(terms.at(Cause::combine_alpha) + terms.at(Cause::combine_off_line), 0, 1e-9);

  b = changed(LayerPart::dispatch, 50);  // twice the rows, mean and most alike
  b.model.mean_rows = 800;
  b.model.rows = 1000;
  terms = terms_between(base(), b);
  EXPECT_NEAR(terms.at(Cause::dispatch_bytes), 40, 1e-9);
  EXPECT_NEAR(terms.at(Cause::dispatch_skew), 10, 1e-9);

  b = changed(LayerPart::dispatch, -25);  // half the copies
  b.model.dedup = 0.5;
  terms = terms_between(base(), b);
  EXPECT_NEAR(terms.at(Cause::dispatch_dedup), -20, 1e-9);  // of the mean rank's rows
  EXPECT_NEAR(terms.at(Cause::dispatch_skew), -5, 1e-9);
  EXPECT_NEAR(terms.at(Cause::dispatch_off_line), 0, 1e-9);
}

// EP1 sends nothing to others, so nobody measured a line for it.
TEST(Terms, WhereOneSideExchangesNothingTheOtherSidesLineCounts) {
  Breakdown alone = base();
  alone.model.alpha_us = alone.model.row_us = std::nullopt;
  alone.model.mean_rows = alone.model.rows = 0;
  alone.at(LayerPart::dispatch) = 3;
  alone.period_us -= 57;
  const Terms terms = terms_between(alone, base());
  EXPECT_NEAR(terms.at(Cause::dispatch_alpha), 10, 1e-9);
  EXPECT_NEAR(terms.at(Cause::dispatch_bytes), 40, 1e-9);
  EXPECT_NEAR(terms.at(Cause::dispatch_skew), 10, 1e-9);
  EXPECT_NEAR(terms.at(Cause::dispatch_off_line), -3, 1e-9);
}

TEST(Terms, WhatNobodyMeasuredIsNotSplitOff) {
  Breakdown b = changed(LayerPart::ffn_typical, -30);
  b.model = {};
  b.model.dedup = 1;
  const Terms terms = terms_between(base(), b);
  EXPECT_NEAR(terms.at(Cause::expert_kernel), -30, 1e-9);
  EXPECT_NEAR(terms.at(Cause::weight_traffic), 0, 1e-9);
}

Breakdown random_breakdown(const RandomStream& random, std::uint64_t& next) {
  const auto value = [&] { return 1 + 300 * random.uniform(next++); };
  Breakdown b;
  for (double& part : b.parts_us) part = value();
  b.period_us = value() * 10;
  b.model = {.weight_us = value(),
             .compute_us = value(),
             .skew_floor_us = value(),
             .alpha_us = value(),
             .row_us = value() / 100,
             .mean_rows = value(),
             .rows = value() + 300,
             .dedup = random.uniform(next++)};
  return b;
}

// Whatever the numbers: terms and residual are the measured difference, of both paths and their
// mean, and factors multiply to the ratio of the periods.
TEST(Attribution, AlwaysAddsUp) {
  const RandomStream random(5, Stream::test);
  std::uint64_t next = 0;
  for (int i = 0; i < 200; ++i) {
    const Corners corners{.a = {random_breakdown(random, next)},
                          .b = {random_breakdown(random, next)},
                          .wide_low = {random_breakdown(random, next)},
                          .narrow_high = {random_breakdown(random, next)}};
    const Attribution result = attribute(corners);
    const double difference = corners.b[0].period_us - corners.a[0].period_us;
    const auto sum = [](const Terms& terms) {
      return std::accumulate(terms.values().begin(), terms.values().end(), 0.0);
    };
    EXPECT_NEAR(sum(result.total), difference, 1e-8);
    for (const auto& path : {result.width_first, result.concurrency_first, result.effects}) {
      EXPECT_NEAR(sum(path->concurrency) + sum(path->width), difference, 1e-8);
      EXPECT_NEAR(sum(path->concurrency), path->concurrency.measured_us(), 1e-8);
    }
    double product = 1;
    for (const double factor :
         factors_of(result.total, corners.a[0].period_us, corners.b[0].period_us)) {
      product *= factor;
    }
    EXPECT_NEAR(product, corners.a[0].period_us / corners.b[0].period_us, 1e-9);
  }
}

// Wider alone: -90 us of weights. More tokens alone: +40 us at the narrow size, +20 at the wide
// one.
TEST(Attribution, ShowsBothOrdersAndTheirMean) {
  Breakdown wide_low = changed(LayerPart::ffn_typical, -90);
  wide_low.model.weight_us = 90;
  Breakdown narrow_high = changed(LayerPart::ffn_typical, 40);
  Breakdown b = changed(LayerPart::ffn_typical, -70);
  b.model.weight_us = 90;
  const Attribution result =
      attribute({.a = {base()}, .b = {b}, .wide_low = {wide_low}, .narrow_high = {narrow_high}});
  EXPECT_NEAR(result.total.measured_us(), -70, 1e-9);
  EXPECT_NEAR(result.width_first->width.measured_us(), -90, 1e-9);
  EXPECT_NEAR(result.width_first->concurrency.measured_us(), 20, 1e-9);
  EXPECT_NEAR(result.concurrency_first->concurrency.measured_us(), 40, 1e-9);
  EXPECT_NEAR(result.concurrency_first->width.measured_us(), -110, 1e-9);
  EXPECT_NEAR(result.effects->concurrency.measured_us(), 30, 1e-9);
  EXPECT_NEAR(result.effects->width.at(Cause::weight_traffic), -90, 1e-9);
}

TEST(Attribution, WithoutABridgeEffectsAreNotToldApart) {
  const Attribution result = attribute({.a = {base()}, .b = {changed(LayerPart::router, 5)}});
  EXPECT_FALSE(result.effects.has_value());
  const Attribution same_load = attribute({.a = {base()},
                                           .b = {changed(LayerPart::router, 5)},
                                           .wide_low = {},
                                           .narrow_high = {},
                                           .same_load = true});
  EXPECT_NEAR(same_load.effects->width.measured_us(), 5, 1e-9);
  EXPECT_EQ(same_load.effects->concurrency.measured_us(), 0);
}

// Repeats are taken in pairs: a drift that both meet is no spread.
TEST(Attribution, SpreadIsThatOfPairedRepeats) {
  std::vector<Breakdown> a, b;
  for (const double drift : {0.0, 30.0, 60.0}) {
    a.push_back(changed(LayerPart::ffn_typical, drift));
    b.push_back(changed(LayerPart::ffn_typical, drift + 10 + drift / 30));
  }
  const Attribution result = attribute({.a = a, .b = b});
  const Interval kernel = (*result.total_intervals)[static_cast<std::size_t>(Cause::expert_kernel)];
  EXPECT_NEAR(kernel.low, 10, 1e-9);
  EXPECT_NEAR(kernel.high, 12, 1e-9);
  EXPECT_FALSE(attribute({.a = {base()}, .b = {base()}}).total_intervals.has_value());
}

TEST(Attribution, ACauseIsNamedWhenItExceedsResidualAndSpread) {
  EXPECT_TRUE(is_told(-50, 10, Interval{-60, -45}));
  EXPECT_FALSE(is_told(-50, 60, Interval{-60, -45}));
  EXPECT_FALSE(is_told(-50, 10, Interval{-120, 20}));
  EXPECT_TRUE(is_told(-50, 10, std::nullopt));
}

TEST(Attribution, MediansOverRepeatsKeepTheSum) {
  std::vector<Breakdown> repeats = {changed(LayerPart::router, 3), changed(LayerPart::dispatch, 9),
                                    changed(LayerPart::uneven, 6)};
  const Breakdown median = median_breakdown(repeats);
  EXPECT_EQ(median.period_us, 381);
  EXPECT_NEAR(std::accumulate(median.parts_us.begin(), median.parts_us.end(), 0.0), 381, 1e-9);
  EXPECT_NEAR(median.at(LayerPart::residual), 6, 1e-9);  // each part's median is the base's
}

}  // namespace
}  // namespace epsweep
