// The points that explain others.
#include "plan/bridges.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "plan/plan.h"

namespace epsweep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Concurrency load(ConcurrencyMode mode, std::int64_t tokens) {
  return {.mode = mode, .tokens = tokens, .tokens_per_rank = {}};
}

SweepSpec spec_of(const std::vector<Concurrency>& loads,
                  const std::vector<int>& ep_sizes = {8, 32}) {
  SweepSpec spec;
  spec.ep_sizes = ep_sizes;
  spec.concurrency = loads;
  spec.routing = {{.distribution = "zipf", .params = {}, .file = {}, .file_checksum = {}}};
  spec.placement = {{.name = "eplb", .redundant_slots = 4, .map = {}, .fit_on = {}}};
  spec.transport = {"pairwise"};
  spec.grouped_gemm = {"onednn"};
  spec.dtype = {DType::bf16};
  spec.mapping = {Mapping::packed};
  return spec;
}

std::vector<std::int64_t> tokens_of(const std::vector<Concurrency>& loads) {
  std::vector<std::int64_t> tokens;
  for (const Concurrency& load : loads) {
    EXPECT_EQ(load.mode, ConcurrencyMode::fixed_global);
    tokens.push_back(load.tokens);
  }
  return tokens;
}

// C is 128 and 512: each EP size needs the other's.
TEST(Bridges, GiveEachEpSizeTheTokensOfTheOthers) {
  const SweepSpec spec = spec_of({load(ConcurrencyMode::fixed_per_rank, 16)});
  EXPECT_THAT(tokens_of(bridge_loads(spec, 8)), ElementsAre(512));
  EXPECT_THAT(tokens_of(bridge_loads(spec, 32)), ElementsAre(128));
}

TEST(Bridges, AreNotRunTwice) {
  // 8 * 64 is 512 too, and 128 is asked for in the other mode.
  const SweepSpec spec =
      spec_of({load(ConcurrencyMode::fixed_global, 128), load(ConcurrencyMode::fixed_per_rank, 16),
               load(ConcurrencyMode::fixed_per_rank, 64)});
  EXPECT_THAT(tokens_of(bridge_loads(spec, 8)), ElementsAre(2048));
  EXPECT_THAT(tokens_of(bridge_loads(spec, 32)), IsEmpty());
}

TEST(Bridges, AreNeededByFixedLoadsPerRankOnly) {
  EXPECT_THAT(bridge_loads(spec_of({load(ConcurrencyMode::fixed_global, 128)}), 8), IsEmpty());
  EXPECT_THAT(bridge_loads(spec_of({load(ConcurrencyMode::fixed_per_rank, 16)}, {8}), 8),
              IsEmpty());
  SweepSpec none = spec_of({load(ConcurrencyMode::fixed_per_rank, 16)});
  none.explain = Explain::none;
  EXPECT_THAT(bridge_loads(none, 8), IsEmpty());
}

// In every repeat, right behind the series whose weights they use.
TEST(Bridges, FollowTheirSeries) {
  SweepSpec spec = spec_of(
      {load(ConcurrencyMode::fixed_per_rank, 16), load(ConcurrencyMode::fixed_per_rank, 32)});
  spec.transport = {"pairwise", "alltoallv"};
  for (const int repeats : {1, 3}) {
    spec.repeats = repeats;
    const std::vector<SweepPoint> points = make_plan(spec).points;
    // 2 sizes x 2 loads x 2 transports, and for each size and transport the other's two.
    ASSERT_EQ(points.size(), static_cast<std::size_t>(16 * repeats));
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(points[i].index, static_cast<int>(i));
      if (points[i].load_from != LoadFrom::bridge) continue;
      EXPECT_EQ(points[i].ep_size, points[i - 1].ep_size);
      EXPECT_EQ(points[i].transport, points[i - 1].transport);
      EXPECT_EQ(points[i].repeat, points[i - 1].repeat);
    }
    EXPECT_EQ(std::ranges::count(points, LoadFrom::bridge, &SweepPoint::load_from), 8 * repeats);
  }
}

TEST(Bridges, DeepOnesChangeOneThing) {
  SweepSpec spec = spec_of({load(ConcurrencyMode::fixed_global, 128)}, {8});
  EXPECT_EQ(make_plan(spec).points.size(), 1U);
  spec.explain = Explain::deep;
  const std::vector<SweepPoint> points = make_plan(spec).points;
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[1].load_from, LoadFrom::counterfactual);
  EXPECT_EQ(points[1].routing.distribution, "balanced");
  EXPECT_EQ(points[1].placement, "eplb");
  EXPECT_EQ(points[2].routing.distribution, "zipf");
  EXPECT_EQ(points[2].placement, "contiguous");
  EXPECT_EQ(points[2].redundant_slots, 0);
  EXPECT_EQ(points[2].transport, "pairwise");
  EXPECT_EQ(points[3].load_from, LoadFrom::counterfactual);
  EXPECT_EQ(points[3].transport, "local_copy");
  EXPECT_EQ(points[3].routing.distribution, "zipf");
  EXPECT_EQ(points[3].placement, "eplb");
  spec.routing.push_back(
      {.distribution = "balanced", .params = {}, .file = {}, .file_checksum = {}});
  spec.placement.push_back({.name = "contiguous", .redundant_slots = 0, .map = {}, .fit_on = {}});
  // Four asked ones, and the first with local copies.
  EXPECT_EQ(make_plan(spec).points.size(), 5U);
}

int num_local_copies(const SweepSpec& spec) {
  return static_cast<int>(
      std::ranges::count(make_plan(spec).points, "local_copy", &SweepPoint::transport));
}

TEST(Bridges, LocalCopiesStandForTheFirstTransportOfEveryUnitSizeAndLoad) {
  SweepSpec spec = spec_of(
      {load(ConcurrencyMode::fixed_global, 64), load(ConcurrencyMode::fixed_global, 128)}, {1, 8});
  EXPECT_EQ(num_local_copies(spec), 0);
  spec.explain = Explain::deep;
  spec.transport = {"pairwise", "alltoallv"};
  spec.exchange_unit = {ExchangeUnit::assignment, ExchangeUnit::rank};
  spec.capacity_factor = 1.25;
  EXPECT_EQ(num_local_copies(spec), 2 * 2 * 2);
  for (const SweepPoint& point : make_plan(spec).points) {
    EXPECT_EQ(point.capacity_factor.has_value(), point.transport != "local_copy");
  }
  spec.repeats = 3;
  EXPECT_EQ(num_local_copies(spec), 3 * 8);
}

TEST(Bridges, LocalCopiesThatAreAskedForOrCannotBeAreNotAdded) {
  SweepSpec spec = spec_of({load(ConcurrencyMode::fixed_global, 64)}, {8});
  spec.explain = Explain::deep;
  spec.launch = {Launch::direct, Launch::graph};
  EXPECT_EQ(num_local_copies(spec), 1);
  spec.launch = {Launch::graph};
  EXPECT_EQ(num_local_copies(spec), 0);
  spec.launch = {Launch::direct};
  spec.transport = {"pairwise", "local_copy"};
  // The asked one, and those that its series is explained by: balanced and contiguous.
  EXPECT_EQ(num_local_copies(spec), 3);
}

}  // namespace
}  // namespace epsweep
