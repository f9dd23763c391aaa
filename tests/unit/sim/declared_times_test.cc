// Costs of ranks and links by hand.
#include "sim/declared_times.h"

#include <gtest/gtest.h>

#include "sim_case.h"

namespace epsweep {
namespace {

// Rows of 128 bytes, experts of 3 * 64 * 32 = 6144 parameters or 12,288 bytes.
SweepPoint small_point(int ep_size) {
  SweepPoint point;
  point.model.name = "small";
  point.model.hidden_dim = point.model.expert_io_dim = 64;
  point.model.ffn_dim = 32;
  point.model.num_experts = 4;
  point.model.top_k = 2;
  point.ep_size = ep_size;
  point.concurrency = {ConcurrencyMode::fixed_global, 4, {}};
  return point;
}

Placement contiguous(int ep_size) {
  return make_placement("contiguous", {.num_experts = 4, .ep_size = ep_size});
}

// With EP2, ranks have tokens {0, 1} and {2, 3} and experts {0, 1} and {2, 3}. Rows from rank to
// rank: 0 to 0: 1 (token 0), 0 to 1: 3, 1 to 0: 2 (token 2), 1 to 1: 2 (token 3). Copies: one for
// each, but two from 0 to 1.
const Trace kTrace = {
    .num_tokens = 4, .top_k = 2, .num_experts = 4, .experts = {0, 2, 2, 3, 0, 1, 2, 3}};

TEST(LayerVolume, OfAssignments) {
  const LayerVolume volume = layer_volume(small_point(2), kTrace, contiguous(2), {0, 0});
  EXPECT_EQ(volume.dispatch[0].sent.self, 128);
  EXPECT_EQ(volume.dispatch[0].sent.intra, 3 * 128);
  EXPECT_EQ(volume.dispatch[0].received.intra, 2 * 128);
  EXPECT_EQ(volume.dispatch[1].sent.self, 2 * 128);
  EXPECT_EQ(volume.dispatch[1].received.intra, 3 * 128);
  EXPECT_EQ(volume.dispatch[1].received.inter, 0);
  EXPECT_EQ(volume.combine[0].sent.intra, 2 * 128);
  EXPECT_EQ(volume.combine[0].received.intra, 3 * 128);
  EXPECT_EQ(volume.count_exchange[0].sent.intra, 2 * 8);  // two slots there
}

TEST(LayerVolume, OfRanksInTwoDomains) {
  SweepPoint point = small_point(2);
  point.exchange_unit = ExchangeUnit::rank;
  const LayerVolume volume = layer_volume(point, kTrace, contiguous(2), {0, 1});
  // Uses take 8 bytes each, in granules of 64: one granule for each message.
  EXPECT_EQ(volume.dispatch[0].sent.inter, 2 * 128 + 64);
  EXPECT_EQ(volume.dispatch[0].received.inter, 128 + 64);
  EXPECT_EQ(volume.dispatch[1].sent.self, 128 + 64);
  EXPECT_EQ(volume.dispatch[0].sent.intra, 0);
  EXPECT_EQ(volume.combine[0].sent.inter, 128);
  EXPECT_EQ(volume.combine[0].received.inter, 2 * 128);
}

DeclaredTimes times_of(SweepPoint point, const SimCosts& costs, int world_size) {
  point.sim = std::make_shared<const SimCosts>(costs);
  DeclaredTimesSum sum(point, group_layout(world_size, point.ep_size, point.mapping, point.groups));
  sum.add_layer(kTrace, contiguous(point.ep_size));
  return sum.finish();
}

constexpr double kEps = 1e-15;

TEST(DeclaredTimes, OfStagesAndLinks) {
  SimCosts costs;
  costs.stage_us[static_cast<std::size_t>(Stage::router)] = 7;
  costs.intra = {.alpha_us = 10, .bytes_per_s = 128e6};  // a row in 1 us
  costs.self = {.alpha_us = 0, .bytes_per_s = 1e18};
  costs.launch_us = 10;
  costs.weight_bytes_per_s = 12'288e6;  // an expert in 1 us
  costs.flop_per_s = 1e18;
  const DeclaredTimes times = times_of(small_point(2), costs, 2);
  EXPECT_NEAR(times.at(0, 0, Stage::router), 7e-6, kEps);
  EXPECT_NEAR(times.at(0, 0, Stage::permute), kDefaultLocalStageUs * 1e-6, kEps);
  EXPECT_NEAR(times.at(0, 0, Stage::dispatch), 13e-6, kEps);  // sends 3 rows, receives 2
  EXPECT_NEAR(times.at(0, 1, Stage::dispatch), 13e-6, kEps);
  EXPECT_NEAR(times.at(0, 0, Stage::count_exchange), 10e-6 + 16 / 128e6, kEps);
  EXPECT_NEAR(times.at(0, 0, Stage::expert_ffn), 12e-6, kEps);  // both experts have rows
  // Rank 1 computes 5 rows of 2 * 6144 operations in 50 us, which is more than its weights take.
  costs.flop_per_s = 5 * 2 * 6144 / 50e-6;
  EXPECT_NEAR(times_of(small_point(2), costs, 2).at(0, 1, Stage::expert_ffn), 60e-6, kEps);
}

// Each kind of link is as long as its own bytes take; the slowest counts.
TEST(DeclaredTimes, LinksBetweenDomains) {
  SimCosts costs;
  costs.intra = {.alpha_us = 1, .bytes_per_s = 128e6};
  costs.inter = {.alpha_us = 20, .bytes_per_s = 64e6};
  costs.self = {.alpha_us = 0, .bytes_per_s = 2e6};  // 64 us for a row
  SweepPoint point = small_point(2);
  point.topology.ranks_per_host = 1;
  const DeclaredTimes apart = times_of(point, costs, 2);
  EXPECT_NEAR(apart.at(0, 0, Stage::dispatch), 64e-6, kEps);   // its own row
  EXPECT_NEAR(apart.at(0, 1, Stage::dispatch), 128e-6, kEps);  // its own two
  costs.self.bytes_per_s = 1e18;
  EXPECT_NEAR(times_of(point, costs, 2).at(0, 0, Stage::dispatch), 20e-6 + 6e-6, kEps);
  // Where spread, groups {0, 2} and {1, 3} reach over the hosts {0, 1} and {2, 3}.
  point.topology = {};
  point.topology.hosts = point.topology.ranks_per_host = 2;
  EXPECT_NEAR(times_of(point, costs, 4).at(0, 0, Stage::dispatch), 1e-6 + 3e-6, kEps);
  point.mapping = Mapping::spread;
  EXPECT_NEAR(times_of(point, costs, 4).at(0, 0, Stage::dispatch), 20e-6 + 6e-6, kEps);
}

// Rank 0 receives its own row and two others in dispatch, its own and three in combine; rank 1 its
// two and three others, then two and two. Links and what is said of exchanges are of no account.
TEST(DeclaredTimes, LocalCopiesCostWhatBytesToOneselfDo) {
  SimCosts costs;
  costs.self = {.alpha_us = 2, .bytes_per_s = 128e6};  // a row in 1 us
  costs.intra = costs.inter = {.alpha_us = 100, .bytes_per_s = 1e3};
  costs.links = {{.a = 0, .b = 1, .extra_us = 300}};
  costs.ranks = {{.rank = 1, .slowdown = 2}};
  for (const Stage stage : {Stage::router, Stage::dispatch, Stage::combine}) {
    costs.stage_us[static_cast<std::size_t>(stage)] = 70;
  }
  SweepPoint point = small_point(2);
  EXPECT_EQ(times_of(point, costs, 2).exchanges, Exchanges::between_ranks);
  EXPECT_NEAR(times_of(point, costs, 2).at(0, 0, Stage::dispatch), 370e-6, kEps);
  point.transport = "local_copy";
  const DeclaredTimes times = times_of(point, costs, 2);
  EXPECT_EQ(times.exchanges, Exchanges::local_copies);
  EXPECT_NEAR(times.at(0, 0, Stage::dispatch), 5e-6, kEps);
  EXPECT_NEAR(times.at(0, 0, Stage::combine), 6e-6, kEps);
  EXPECT_NEAR(times.at(0, 1, Stage::dispatch), 2 * 7e-6, kEps);
  EXPECT_NEAR(times.at(0, 1, Stage::combine), 2 * 6e-6, kEps);
  EXPECT_NEAR(times.at(0, 0, Stage::count_exchange), 2e-6 + 32 / 128e6, kEps);
  EXPECT_NEAR(times.at(0, 0, Stage::router), 70e-6, kEps);
}

// EP1 has nobody to talk to.
TEST(DeclaredTimes, OneRankPaysNoAlpha) {
  SimCosts costs;
  costs.self = {.alpha_us = 0, .bytes_per_s = 128e6};
  EXPECT_NEAR(times_of(small_point(1), costs, 1).at(0, 0, Stage::dispatch), 8e-6, kEps);
}

// The transfer of the two grows by just that; no other stage or rank does.
TEST(DeclaredTimes, SlowRankAndSlowLink) {
  const DeclaredTimes plain = times_of(small_point(4), {}, 4);
  SimCosts costs;
  costs.links = {{.a = 1, .b = 3, .extra_us = 300}};
  const DeclaredTimes linked = times_of(small_point(4), costs, 4);
  for (int row = 0; row < 4; ++row) {
    for (int s = 0; s < kNumStages; ++s) {
      const auto stage = static_cast<Stage>(s);
      const bool slow =
          (row == 1 || row == 3) && (stage == Stage::dispatch || stage == Stage::combine);
      EXPECT_DOUBLE_EQ(linked.at(0, row, stage), plain.at(0, row, stage) + (slow ? 300e-6 : 0));
    }
  }
  costs = {};
  costs.ranks = {{.rank = 2, .slowdown = 1.5}};
  const DeclaredTimes slowed = times_of(small_point(4), costs, 4);
  for (int s = 0; s < kNumStages; ++s) {
    const auto stage = static_cast<Stage>(s);
    EXPECT_DOUBLE_EQ(slowed.at(0, 2, stage), 1.5 * plain.at(0, 2, stage));
    EXPECT_EQ(slowed.at(0, 1, stage), plain.at(0, 1, stage));
  }
  // A link between groups carries nothing.
  costs = {};
  costs.links = {{.a = 1, .b = 2, .extra_us = 300}};
  EXPECT_EQ(times_of(small_point(2), costs, 4).at(0, 1, Stage::dispatch),
            times_of(small_point(2), {}, 4).at(0, 1, Stage::dispatch));
}

TEST(FfnRates, OfTheHardwareUnlessDeclared) {
  SweepPoint point = small_point(2);
  EXPECT_EQ(ffn_rates(point, {}).flop_per_s, kDefaultFlopPerS);
  point.hardware = HardwareShape{};
  point.hardware->measured.bf16_tflops = 700;
  point.hardware->measured.memory_tb_per_s = 3;
  EXPECT_EQ(ffn_rates(point, {}).flop_per_s, 700e12);
  EXPECT_EQ(ffn_rates(point, {}).weight_bytes_per_s, 3e12);
  SimCosts costs;
  costs.flop_per_s = 5e12;
  EXPECT_EQ(ffn_rates(point, costs).flop_per_s, 5e12);
  point.dtype = DType::fp8;
  EXPECT_EQ(ffn_rates(point, {}).flop_per_s, kDefaultFp8FlopPerS);  // of fp8 nothing is measured
}

// A line of 1 us + 0.5 us a token for the router, a table of 4 us + 3 us a slot, and an exchange of
// 5 us + 1 us for 128 bytes, known at EP1 and EP2's fabric.
StageCosts small_costs() {
  StageCosts costs;
  costs.ffn =
      FfnTable(std::vector<FfnSample>{{1, 1, 7e-6}, {1, 9, 7e-6}, {4, 1, 16e-6}, {4, 9, 16e-6}});
  const FabricLine line{{.alpha_s = 5e-6, .beta_bytes_per_s = 128e6}, 2, 2};
  costs.dispatch.within = costs.combine.within = line;
  costs.by_tokens[static_cast<std::size_t>(Stage::router)] =
      StageLine{.alpha_s = 1e-6, .beta_bytes_per_s = 2e6};
  return costs;
}

TEST(DeclaredTimes, PredictedCostsTakeThePlaceOfDeclaredOnes) {
  const SweepPoint point = small_point(2);
  const StageCosts costs = small_costs();
  DeclaredTimesSum sum(point, group_layout(2, 2, point.mapping, point.groups), {.costs = &costs});
  sum.add_layer(kTrace, contiguous(2));
  const DeclaredTimes times = sum.finish();
  EXPECT_NEAR(times.at(0, 0, Stage::router), 2e-6, 1e-12);       // two tokens
  EXPECT_NEAR(times.at(0, 0, Stage::dispatch), 8e-6, 1e-12);     // 3 rows out
  EXPECT_NEAR(times.at(0, 1, Stage::dispatch), 8e-6, 1e-12);     // 3 rows in
  EXPECT_NEAR(times.at(0, 1, Stage::expert_ffn), 10e-6, 1e-12);  // two slots
  EXPECT_EQ(times.at(0, 0, Stage::permute), 0);                  // not calibrated
  EXPECT_EQ(sum.distance().exchange_doublings, 0);
}

// EP4 is one doubling from EP2: 5 % more at the high end, and one slot is inside the table.
TEST(DeclaredTimes, BoundsOfForecastsAreTaken) {
  const SweepPoint point = small_point(4);
  const StageCosts costs = small_costs();
  const auto dispatch_s = [&](Bound bound) {
    DeclaredTimesSum sum(point, group_layout(4, 4, point.mapping, point.groups),
                         {.costs = &costs, .bound = bound});
    sum.add_layer(kTrace, contiguous(4));
    EXPECT_EQ(sum.distance().exchange_doublings, 1);
    EXPECT_EQ(sum.distance().ffn_doublings, 0);
    return sum.finish().at(0, 0, Stage::dispatch);
  };
  const double central_s = dispatch_s(Bound::central);
  EXPECT_NEAR(dispatch_s(Bound::high), 1.05 * central_s, 1e-12);
  EXPECT_NEAR(dispatch_s(Bound::low), 0.97 * central_s, 1e-12);
}

// Both ranks of EP2 in one layer: 40 and 70 us of FFN, between 38 and 45, 65 and 90.
VirtualShards two_shards() {
  const auto us = [](double p50, double low, double high) {
    return StageSpan{.seconds = p50 * 1e-6, .low_s = low * 1e-6, .high_s = high * 1e-6};
  };
  const auto shard = [&us](int ep_rank, const StageSpan& ffn) {
    MeasuredShard made{.ep_rank = ep_rank, .of_routing = {{}}};
    auto& stages = made.of_routing[0];
    stages[static_cast<std::size_t>(Stage::router)] = us(3, 2, 4);
    stages[static_cast<std::size_t>(Stage::permute)] = us(2, 1, 3);
    stages[static_cast<std::size_t>(Stage::expert_ffn)] = ffn;
    stages[static_cast<std::size_t>(Stage::unpermute)] = us(5, 4, 6);
    return made;
  };
  return VirtualShards({{{3, 2}, {5, 2}}}, {2, 2},
                       {shard(0, us(40, 38, 45)), shard(1, us(70, 65, 90))});
}

// Measured own stages and declared exchanges: 3 + 2 + 70 + 5 us of the slowest ranks, and 10 us
// with 16 bytes of counts, with three rows there and three rows back at 1 us a row.
TEST(DeclaredTimes, OfMeasuredShardsAndADeclaredExchange) {
  SimCosts costs;
  costs.intra = {.alpha_us = 10, .bytes_per_s = 128e6};
  costs.self = {.alpha_us = 0, .bytes_per_s = 1e18};
  SweepPoint point = small_point(2);
  point.sim = std::make_shared<const SimCosts>(costs);
  const VirtualShards shards = two_shards();
  const auto times_at = [&](Bound bound) {
    DeclaredTimesSum sum(point, group_layout(2, 2, point.mapping, point.groups),
                         {.costs = nullptr, .bound = bound, .shards = &shards});
    sum.add_layer(kTrace, contiguous(2));
    return sum.finish();
  };
  const DeclaredTimes times = times_at(Bound::central);
  EXPECT_NEAR(times.at(0, 0, Stage::expert_ffn), 40e-6, kEps);
  EXPECT_NEAR(times.at(0, 1, Stage::expert_ffn), 70e-6, kEps);
  EXPECT_NEAR(times.at(0, 1, Stage::router), 3e-6, kEps);
  EXPECT_NEAR(times.at(0, 1, Stage::dispatch), 13e-6, kEps);
  const PointSummary summary = testing::simulated(times, {}, 6);
  EXPECT_NEAR(*summary.all_stages.slowest_s.p50, (3 + 2 + 70 + 5 + 10.125 + 13 + 13) * 1e-6, 1e-10);
  EXPECT_NEAR(times_at(Bound::low).at(0, 1, Stage::expert_ffn), 65e-6, kEps);
  EXPECT_NEAR(times_at(Bound::high).at(0, 1, Stage::expert_ffn), 90e-6, kEps);
  EXPECT_NEAR(times_at(Bound::high).at(0, 1, Stage::dispatch), 13e-6, kEps);
}

// A calibration's exchange of 10 us, one doubling away, widens by [-3, +5] % beside them; it needs
// no table of FFNs.
TEST(DeclaredTimes, OfMeasuredShardsAndACalibratedExchange) {
  const FabricLine line{
      .line = {.alpha_s = 10e-6, .beta_bytes_per_s = 1e18}, .narrowest = 1, .widest = 1};
  StageCosts costs;
  costs.dispatch.within = costs.combine.within = line;
  const VirtualShards shards = two_shards();
  const SweepPoint point = small_point(2);
  const auto layer_us = [&](Bound bound) {
    DeclaredTimesSum sum(point, group_layout(2, 2, point.mapping, point.groups),
                         {.costs = &costs, .bound = bound, .shards = &shards});
    sum.add_layer(kTrace, contiguous(2));
    return *testing::simulated(sum.finish(), {}, 6).all_stages.slowest_s.p50 * 1e6;
  };
  EXPECT_NEAR(layer_us(Bound::central), 80 + 2 * 10, 1e-3);
  EXPECT_NEAR(layer_us(Bound::low), 2 + 1 + 65 + 4 + 2 * 9.7, 1e-3);
  EXPECT_NEAR(layer_us(Bound::high), 4 + 3 + 90 + 6 + 2 * 10.5, 1e-3);
}

}  // namespace
}  // namespace epsweep
