#include "costs/exchange_model.h"

#include <vector>

#include <gtest/gtest.h>

namespace epsweep {
namespace {

ExchangeDemand within(int ep_size, double bytes) {
  return {ep_size, Reach::within_domain, {.intra = bytes}};
}
ExchangeDemand across(int ep_size, double intra, double inter) {
  return {ep_size, Reach::across_domains, {.intra = intra, .inter = inter}};
}

// Inside 10 us + bytes / 1 GB/s at EP2 to EP8; across 20 us + bytes / 0.1 GB/s at EP16 and EP32,
// whose bytes inside a domain are not what takes them long.
const std::vector<ExchangeObservation> kBoth = {{within(2, 1e3), 11e-6},
                                                {within(4, 3e3), 13e-6},
                                                {within(8, 7e3), 17e-6},
                                                {across(16, 3.5e3, 4e3), 60e-6},
                                                {across(32, 1.75e3, 6e3), 80e-6}};

TEST(ExchangeModel, EveryFabricHasItsLine) {
  const ExchangeModel model = fit_exchange_model(kBoth);
  ASSERT_TRUE(model.within && model.across);
  EXPECT_NEAR(model.within->line.alpha_s, 10e-6, 1e-12);
  EXPECT_NEAR(model.within->line.beta_bytes_per_s, 1e9, 1);
  EXPECT_EQ(model.within->narrowest, 4);
  EXPECT_EQ(model.within->widest, 8);
  EXPECT_NEAR(model.across->line.alpha_s, 20e-6, 1e-12);
  EXPECT_NEAR(model.across->line.beta_bytes_per_s, 1e8, 1);
}

// EP128 is two doublings from EP32: 20 + 75 us, 3 % less and 5 % more for each.
TEST(ExchangeModel, IntervalsWidenByDoubling) {
  const ExchangeForecast forecast =
      forecast_exchange(fit_exchange_model(kBoth), across(128, 0.5e3, 7.5e3));
  ASSERT_TRUE(forecast.time) << forecast.refusal;
  EXPECT_NEAR(forecast.time->seconds, 95e-6, 1e-11);
  EXPECT_DOUBLE_EQ(forecast.time->doublings, 2);
  EXPECT_NEAR(forecast.time->low_s, 95e-6 * 0.97 * 0.97, 1e-11);
  EXPECT_NEAR(forecast.time->high_s, 95e-6 * 1.05 * 1.05, 1e-11);
  EXPECT_NEAR(forecast.alpha_s, 20e-6, 1e-11);
  EXPECT_NEAR(forecast.bytes_s, 75e-6, 1e-11);
  EXPECT_EQ(forecast.fabric, Reach::across_domains);
  const auto inside = forecast_exchange(fit_exchange_model(kBoth), across(24, 2e3, 5e3));
  EXPECT_DOUBLE_EQ(inside.time->low_s, inside.time->high_s);
}

// 200 kB inside the domain take 210 us, longer than the 60 us beyond it.
TEST(ExchangeModel, TheSlowerFabricDecides) {
  const auto forecast = forecast_exchange(fit_exchange_model(kBoth), across(16, 200e3, 4e3));
  ASSERT_TRUE(forecast.time);
  EXPECT_NEAR(forecast.time->seconds, 210e-6, 1e-11);
  EXPECT_EQ(forecast.fabric, Reach::within_domain);
}

TEST(ExchangeModel, ABoundaryThatWasNotCrossedIsRefused) {
  const std::vector<ExchangeObservation> inside(kBoth.begin(), kBoth.begin() + 3);
  const auto out = forecast_exchange(fit_exchange_model(inside), across(16, 1e3, 1e3));
  EXPECT_FALSE(out.time);
  EXPECT_EQ(out.refusal,
            "EP16 spans several domains, and the calibration (EP4 and EP8) never left one: it says "
            "nothing about the links between them");
  const std::vector<ExchangeObservation> outside(kBoth.begin() + 3, kBoth.end());
  const auto in = forecast_exchange(fit_exchange_model(outside), within(8, 1e3));
  EXPECT_FALSE(in.time);
  EXPECT_NE(in.refusal.find("EP8 stays inside a domain"), std::string::npos) << in.refusal;
  EXPECT_FALSE(forecast_exchange({}, within(8, 1e3)).refusal.empty());
}

TEST(ExchangeModel, ResidualsBeyondTheBandAreNamed) {
  EXPECT_EQ(exchange_limit(0.15), ExchangeLimit::fabric);
  EXPECT_EQ(exchange_limit(-0.15), ExchangeLimit::fabric);
  EXPECT_EQ(exchange_limit(0.151), ExchangeLimit::software_or_contention);
  EXPECT_EQ(exchange_limit(-0.151), ExchangeLimit::faster_than_modelled);
  EXPECT_STREQ(to_string(ExchangeLimit::software_or_contention), "software- or contention-limited");
}

}  // namespace
}  // namespace epsweep
