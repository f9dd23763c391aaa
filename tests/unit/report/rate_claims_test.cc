#include "report/rate_claims.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "sample_point.h"

namespace epsweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::measured_input;
using testing::sample_point;

// Two ranks with 6,144 FLOPs and 3,072 weight bytes each in 10 us: 0.6144 GFLOP/s, 0.3072 GB/s.
PointRecordInput input_with_ceilings(double shared_flop, double shared_read) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  RankCeilings rank{.flop_per_s = shared_flop / 2,
                    .read_bytes_per_s = shared_read / 2,
                    .shared_flop_per_s = shared_flop,
                    .shared_read_bytes_per_s = shared_read};
  input.ceilings = PointCeilings{.ranks = {rank, rank}, .exchange = std::nullopt};
  return input;
}

std::vector<double> rates(const std::vector<RateClaim>& claims) {
  std::vector<double> all;
  for (const RateClaim& claim : claims) all.push_back(claim.rate);
  return all;
}

TEST(RateClaims, WithoutCeilingsAndPeaksThereIsNothingToExceed) {
  EXPECT_THAT(rate_claims(measured_input(sample_point(2, 8))), IsEmpty());
}

TEST(RateClaims, AreOfEveryRankByHand) {
  const auto claims = rate_claims(input_with_ceilings(1e9, 1e9));
  ASSERT_EQ(claims.size(), 4U);
  EXPECT_NEAR(claims[0].rate, 0.6144e9, 1);
  EXPECT_NEAR(claims[1].rate, 0.3072e9, 1);
  EXPECT_EQ(claims[0].limit, 1e9);  // what both ranks had together
  EXPECT_THAT(claims[2].what, HasSubstr("rank 1"));
  EXPECT_FALSE(worst_impossible(claims));
}

TEST(RateClaims, BeyondTheAllowanceAPointIsImpossible) {
  EXPECT_FALSE(worst_impossible(rate_claims(input_with_ceilings(0.56e9, 1e9))));  // 9.7 % above
  const auto flop = worst_impossible(rate_claims(input_with_ceilings(0.55e9, 1e9)));
  ASSERT_TRUE(flop);
  EXPECT_THAT(flop->what, HasSubstr("computes"));
  const auto read = worst_impossible(rate_claims(input_with_ceilings(1e9, 0.2e9)));
  ASSERT_TRUE(read);
  EXPECT_THAT(impossible_text(*read),
              HasSubstr("reads weights at 0.3072 GB/s, above the 0.2 GB/s"));
}

TEST(RateClaims, WeightsInACacheSayNothingAboutMemory) {
  PointRecordInput warm = input_with_ceilings(1e9, 0.2e9);
  warm.point.weight_cache = WeightCache::warm;
  EXPECT_FALSE(worst_impossible(rate_claims(warm)));
  PointRecordInput cached = input_with_ceilings(1e9, 0.2e9);
  for (RankCeilings& rank : cached.ceilings->ranks) rank.cached = true;
  EXPECT_FALSE(worst_impossible(rate_claims(cached)));
}

TEST(RateClaims, DeclaredPeaksAllowNothing) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  input.point.hardware = HardwareShape{.name = "toy"};
  input.point.hardware->peak.bf16_tflops = 0.6e-3;
  input.point.hardware->peak.fp8_tflops = 1;
  input.point.hardware->peak.memory_tb_per_s = 0.31e-3;
  const auto claim = worst_impossible(rate_claims(input));
  ASSERT_TRUE(claim);
  EXPECT_THAT(impossible_text(*claim),
              HasSubstr("above the 0.6 GFLOP/s of the peak declared for toy"));
  input.point.hardware->peak.bf16_tflops = 0.62e-3;
  EXPECT_FALSE(worst_impossible(rate_claims(input)));
  input.point.hardware->peak.memory_tb_per_s = 0.3e-3;
  EXPECT_TRUE(worst_impossible(rate_claims(input)));
  input.point.weight_cache = WeightCache::warm;
  EXPECT_FALSE(worst_impossible(rate_claims(input)));
  // Each dtype has its own peak; no source states one for fp32.
  input.point.hardware->peak = {.bf16_tflops = 1, .fp8_tflops = 0.1e-3};
  EXPECT_FALSE(worst_impossible(rate_claims(input)));
  input.point.dtype = DType::fp8;
  EXPECT_TRUE(worst_impossible(rate_claims(input)));
  input.point.hardware->peak = {.bf16_tflops = 0.1e-3, .fp8_tflops = 0.1e-3};
  input.point.dtype = DType::fp32;
  EXPECT_FALSE(worst_impossible(rate_claims(input)));
}

// 8 remote rows of 32 bytes, 6 of them inside the domain: 96 and 32 bytes a rank in 10 us.
TEST(RateClaims, ExchangesStayBelowTheirLinks) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  input.point.hardware = HardwareShape{.name = "toy"};
  input.point.hardware->peak.link_gb_per_s = 1;
  input.point.hardware->peak.nic_gbit_per_s = 1;
  EXPECT_THAT(rate_claims(input), IsEmpty());  // nobody knows where the ranks are
  input.workload->traffic.domains = DomainTraffic{.a_intra_copies = 6};
  const auto claims = rate_claims(input);
  EXPECT_THAT(rates(claims),
              ElementsAre(::testing::DoubleNear(9.6e6, 1), ::testing::DoubleNear(3.2e6, 1),
                          ::testing::DoubleNear(9.6e6, 1), ::testing::DoubleNear(3.2e6, 1)));
  EXPECT_NEAR(claims[0].limit, 1e9, 1);
  EXPECT_NEAR(claims[1].limit, 125e6, 1);
  EXPECT_FALSE(worst_impossible(claims));
  input.point.hardware->peak.nic_gbit_per_s = 0.02;  // 2.5 MB/s
  ASSERT_TRUE(worst_impossible(rate_claims(input)));
  EXPECT_THAT(worst_impossible(rate_claims(input))->what, HasSubstr("beyond the domain"));
}

TEST(RateClaims, LocalCopiesClaimNothingOfLinks) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  input.point.hardware = HardwareShape{.name = "toy"};
  input.point.hardware->peak.link_gb_per_s = 1e-9;
  input.workload->traffic.domains = DomainTraffic{.a_intra_copies = 8};
  EXPECT_EQ(rate_claims(input).size(), 2U);
  input.point.transport = "local_copy";
  EXPECT_THAT(rate_claims(input), IsEmpty());
}

// Only the letter that is sent counts.
TEST(RateClaims, RankUnitSendsCopiesByRank) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  input.point.exchange_unit = ExchangeUnit::rank;
  input.point.hardware = HardwareShape{.name = "toy"};
  input.point.hardware->peak.link_gb_per_s = 1;
  input.workload->traffic.domains = DomainTraffic{.a_intra_copies = 6, .b_intra_copies = 5};
  EXPECT_NEAR(rate_claims(input).at(0).rate, 5 * 32 / 2 / 10e-6, 1);
}

}  // namespace
}  // namespace epsweep
