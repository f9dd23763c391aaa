#include <cmath>

#include <gtest/gtest.h>

#include "report/metric.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using testing::even_summary;
using testing::even_times;
using testing::sample_point;
using testing::sample_workload;

// Rank 1 needs 30 us for its experts, everything else takes 10 us: all stages 90 us. A layer among
// others takes 80.
PointSummary late_ffn_summary(int ranks) {
  TimingTable table = even_times(ranks, 20, 10e-6);
  for (int i = 0; i < 20; ++i) {
    for (int s = static_cast<int>(Stage::expert_ffn); s < kNumStages; ++s) {
      const auto stage = static_cast<Stage>(s);
      if (stage != Stage::expert_ffn) table.at(1, i, 0, stage, Measure::begin_s) += 20e-6;
      table.at(1, i, 0, stage, Measure::end_s) += 20e-6;
    }
  }
  return even_summary(table, 80e-6);
}

std::optional<double> metric(const std::string& name, const PointFacts& facts) {
  return MetricCatalog::instance().at(name).compute(facts);
}

TEST(Metrics, ByHandOnTwoGroupsOfFour) {
  const SweepPoint point = sample_point(4, 8);
  const PointWorkload work = sample_workload(point);
  const PointSummary summary = late_ffn_summary(8);
  const PointFacts facts = {.point = point,
                            .summary = summary,
                            .num_groups = 2,
                            .num_active_ranks = 8,
                            .traffic = work.traffic,
                            .ffn = work.ffn,
                            .slowest_rank_ffn = work.ffn_of_rank[1]};
  EXPECT_NEAR(*metric("layer_p50_us", facts), 80, 1e-9);
  EXPECT_NEAR(*metric("tokens_per_s", facts), 2 * 8 / 80e-6, 1e-6);
  EXPECT_NEAR(*metric("tokens_per_s_per_rank", facts), 2 * 8 / 80e-6 / 8, 1e-6);
  EXPECT_NEAR(*metric("ffn_gflop_per_s_per_rank", facts), 12288.0 / (4 * 30e-6) / 1e9, 1e-12);
  EXPECT_NEAR(*metric("ffn_gflop_per_s_of_slowest_rank", facts), 3072.0 / 30e-6 / 1e9, 1e-12);
  EXPECT_NEAR(*metric("ffn_weight_gb_per_s_per_rank", facts), 6144.0 / (4 * 30e-6) / 1e9, 1e-12);
  const double remote_gb_per_s = 8.0 * 32 / (4 * 10e-6) / 1e9;
  EXPECT_NEAR(*metric("dispatch_a_remote_gb_per_s_per_rank", facts), remote_gb_per_s, 1e-12);
  EXPECT_NEAR(*metric("combine_a_remote_gb_per_s_per_rank", facts), remote_gb_per_s, 1e-12);
  EXPECT_NEAR(*metric("exchange_share", facts), 30.0 / 90, 1e-9);
  EXPECT_NEAR(*metric("ffn_share", facts), 30.0 / 90, 1e-9);
}

TEST(Metrics, AreOfOneLayerWhereAPointHasSeveral) {
  SweepPoint point = sample_point(4, 8);
  point.layers = 2;
  PointWorkload work = sample_workload(point);
  work.ffn.flops *= 2;
  work.traffic.a_copies *= 2;
  work.traffic.a_self_copies *= 2;
  const PointSummary summary = even_summary(even_times(4, 20, 10e-6, 2), 70e-6);
  const PointFacts facts = {.point = point,
                            .summary = summary,
                            .num_groups = 1,
                            .num_active_ranks = 4,
                            .traffic = work.traffic,
                            .ffn = work.ffn,
                            .slowest_rank_ffn = std::nullopt};
  EXPECT_NEAR(*metric("tokens_per_s", facts), 8 / 70e-6, 1e-6);
  EXPECT_NEAR(*metric("ffn_gflop_per_s_per_rank", facts), 12288.0 / (4 * 10e-6) / 1e9, 1e-12);
  EXPECT_NEAR(*metric("dispatch_a_remote_gb_per_s_per_rank", facts), 8.0 * 32 / (4 * 10e-6) / 1e9,
              1e-12);
  EXPECT_FALSE(metric("ffn_gflop_per_s_of_slowest_rank", facts).has_value());
}

// No rate of copies that were not sent: 6 of 12 by letter B leave, 8 of 16 by A.
TEST(Metrics, RatesAreOfTheLetterThatIsSent) {
  SweepPoint point = sample_point(4, 8);
  const PointWorkload work = sample_workload(point);
  const PointSummary summary = even_summary(even_times(4, 20, 10e-6), 70e-6);
  for (const ExchangeUnit unit : {ExchangeUnit::assignment, ExchangeUnit::rank}) {
    point.exchange_unit = unit;
    const PointFacts facts = {.point = point,
                              .summary = summary,
                              .num_groups = 1,
                              .num_active_ranks = 4,
                              .traffic = work.traffic,
                              .ffn = work.ffn,
                              .slowest_rank_ffn = std::nullopt};
    const bool by_rank = unit == ExchangeUnit::rank;
    for (const std::string stage : {"dispatch", "combine"}) {
      const auto sent =
          metric(stage + (by_rank ? "_b" : "_a") + "_remote_gb_per_s_per_rank", facts);
      const auto not_sent =
          metric(stage + (by_rank ? "_a" : "_b") + "_remote_gb_per_s_per_rank", facts);
      EXPECT_NEAR(sent.value_or(0), (by_rank ? 6 : 8) * 32 / (4 * 10e-6) / 1e9, 1e-12);
      EXPECT_FALSE(not_sent.has_value());
    }
  }
}

// Case C12: nothing leaves the rank, so there is no link to have a bandwidth.
TEST(Metrics, LocalCopiesHaveNoLinkBandwidth) {
  for (const ExchangeUnit unit : {ExchangeUnit::assignment, ExchangeUnit::rank}) {
    SweepPoint point = sample_point(4, 8);
    point.exchange_unit = unit;
    point.transport = "local_copy";
    const PointWorkload work = sample_workload(point);
    const PointSummary summary = late_ffn_summary(4);
    const PointFacts facts = {
        .point = point,
        .summary = summary,
        .num_groups = 1,
        .num_active_ranks = 4,
        .traffic = work.traffic,
        .ffn = work.ffn,
        .slowest_rank_ffn = work.ffn_of_rank[1],
        .exchange_line = ExchangeLine{.alpha_s = 1e-6, .beta_bytes_per_s = 1e9}};
    for (const char* name :
         {"dispatch_a_remote_gb_per_s_per_rank", "combine_a_remote_gb_per_s_per_rank",
          "dispatch_b_remote_gb_per_s_per_rank", "combine_b_remote_gb_per_s_per_rank",
          "exchange_ceiling_share"}) {
      EXPECT_FALSE(metric(name, facts).has_value()) << name;
    }
    EXPECT_TRUE(metric("layer_p50_us", facts).has_value());
  }
}

TEST(Metrics, Ep1HasNoLinkBandwidth) {
  const SweepPoint point = sample_point(1, 8);
  const PointWorkload work = sample_workload(point);
  const PointSummary summary = even_summary(even_times(1, 20, 10e-6), 70e-6);
  const PointFacts facts = {.point = point,
                            .summary = summary,
                            .num_groups = 1,
                            .num_active_ranks = 1,
                            .traffic = work.traffic,
                            .ffn = work.ffn,
                            .slowest_rank_ffn = work.ffn};
  EXPECT_FALSE(metric("dispatch_a_remote_gb_per_s_per_rank", facts).has_value());
  EXPECT_FALSE(metric("combine_a_remote_gb_per_s_per_rank", facts).has_value());
  EXPECT_TRUE(metric("tokens_per_s", facts).has_value());
}

TEST(Metrics, AreNeverInfiniteOrNan) {
  const SweepPoint point = sample_point(2, 0);
  const Traffic traffic;
  const FfnWork ffn;
  const PointSummary summary = even_summary(TimingTable(2, 20, 1), 0);  // all zeros
  const PointFacts facts = {.point = point,
                            .summary = summary,
                            .num_groups = 1,
                            .num_active_ranks = 2,
                            .traffic = traffic,
                            .ffn = ffn,
                            .slowest_rank_ffn = std::nullopt};
  for (const std::string& name : MetricCatalog::instance().names()) {
    EXPECT_TRUE(std::isfinite(metric(name, facts).value_or(0))) << name;
  }
}

TEST(Metrics, AllSayTheirUnitAndFormula) {
  EXPECT_EQ(MetricCatalog::instance().names().size(), 18u);
  for (const std::string& name : MetricCatalog::instance().names()) {
    const MetricEntry& entry = MetricCatalog::instance().at(name);
    EXPECT_FALSE(entry.unit.empty()) << name;
    EXPECT_GT(entry.formula.size(), 10u) << name;
  }
}

}  // namespace
}  // namespace epsweep
