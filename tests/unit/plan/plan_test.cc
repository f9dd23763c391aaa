#include "plan/plan.h"

#include <numeric>
#include <set>

#include <gmock/gmock.h>

#include "base/error.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

SweepPoint point_with(int ep_size, ConcurrencyMode mode, std::int64_t tokens) {
  SweepPoint point;
  point.model = {.name = "m", .num_experts = 256, .top_k = 8};
  point.ep_size = ep_size;
  point.concurrency = {.mode = mode, .tokens = tokens, .tokens_per_rank = {}};
  point.routing = {.distribution = "uniform", .params = {}, .file = {}};
  return point;
}

std::vector<std::int64_t> shares(const SweepPoint& point) {
  std::vector<std::int64_t> sizes;
  for (const TokenRange& range : token_ranges(point)) sizes.push_back(range.size());
  return sizes;
}

SweepSpec small_spec() {
  SweepSpec spec;
  spec.name = "s";
  spec.model = {.name = "m", .num_experts = 8, .top_k = 2};
  spec.ep_sizes = {1, 2};
  spec.concurrency = {
      {.mode = ConcurrencyMode::fixed_global, .tokens = 8, .tokens_per_rank = {}},
      {.mode = ConcurrencyMode::fixed_per_rank, .tokens = 4, .tokens_per_rank = {}}};
  spec.routing = {{.distribution = "uniform", .params = {}, .file = {}}};
  spec.placement = {{.name = "contiguous", .redundant_slots = 0}};
  spec.transport = {"pairwise"};
  spec.grouped_gemm = {"onednn"};
  spec.dtype = {DType::bf16};
  spec.mapping = {Mapping::packed};
  spec.explain = Explain::none;
  return spec;
}

// Cases C01 and C02.
TEST(SweepPoint, ConcurrencyModesHoldDifferentCounts) {
  EXPECT_EQ(shares(point_with(8, ConcurrencyMode::fixed_global, 256))[0], 32);
  EXPECT_EQ(shares(point_with(32, ConcurrencyMode::fixed_global, 256))[0], 8);
  EXPECT_EQ(point_with(8, ConcurrencyMode::fixed_per_rank, 32).tokens_global(), 256);
  EXPECT_EQ(point_with(32, ConcurrencyMode::fixed_per_rank, 32).tokens_global(), 1024);
}

// Case C04.
TEST(SweepPoint, TokensThatDoNotDivideDifferByAtMostOne) {
  EXPECT_THAT(shares(point_with(8, ConcurrencyMode::fixed_global, 100)),
              ElementsAre(13, 13, 13, 13, 12, 12, 12, 12));
  const auto wide = shares(point_with(32, ConcurrencyMode::fixed_global, 100));
  EXPECT_EQ(std::count(wide.begin(), wide.end(), 4), 4);
  EXPECT_EQ(std::count(wide.begin(), wide.end(), 3), 28);
  EXPECT_EQ(token_ranges(point_with(32, ConcurrencyMode::fixed_global, 100)).back().end, 100);
}

TEST(SweepPoint, ListedTokensFitTheirEpSizeOnly) {
  SweepPoint point = point_with(3, ConcurrencyMode::listed, 0);
  point.concurrency.tokens_per_rank = {5, 0, 2};
  EXPECT_EQ(point.tokens_global(), 7);
  EXPECT_THAT(shares(point), ElementsAre(5, 0, 2));
  EXPECT_FALSE(infeasible_reason(point).has_value());
  point.ep_size = 4;
  EXPECT_THAT(infeasible_reason(point).value(), HasSubstr("lists 3 ranks, ep_size is 4"));
}

// Case C09.
TEST(SweepPoint, MoreRanksThanExpertsIsAChoiceToBeMade) {
  SweepPoint point = point_with(32, ConcurrencyMode::fixed_global, 64);
  point.model.num_experts = 8;
  EXPECT_THAT(infeasible_reason(point).value(),
              AllOf(HasSubstr("ep_size 32"), HasSubstr("8 experts"), HasSubstr("24 ranks")));
  point.allow_empty_ranks = true;
  EXPECT_FALSE(infeasible_reason(point).has_value());
  point.allow_empty_ranks = false;
  point.redundant_slots = 24;  // replicas fill the ranks
  EXPECT_FALSE(infeasible_reason(point).has_value());
  EXPECT_THAT(point_label(point), HasSubstr("+24"));
}

TEST(SweepPoint, RowsPastTheIndexWidthAreRefused) {
  SweepPoint point = point_with(8, ConcurrencyMode::fixed_global, 268'435'455);
  EXPECT_FALSE(infeasible_reason(point).has_value());
  point.concurrency.tokens = 268'435'456;
  EXPECT_THAT(infeasible_reason(point).value(), HasSubstr("2147483648 rows"));
}

TEST(SweepPoint, IdChangesWithEverythingButThePosition) {
  const SweepPoint point = point_with(8, ConcurrencyMode::fixed_global, 256);
  SweepPoint other = point;
  other.index = 5;
  EXPECT_EQ(point_id(other), point_id(point));
  std::set<std::string> ids = {point_id(point)};
  const auto add = [&](auto change) {
    SweepPoint changed = point;
    change(changed);
    EXPECT_TRUE(ids.insert(point_id(changed)).second);
  };
  add([](SweepPoint& p) { p.ep_size = 4; });
  add([](SweepPoint& p) { p.concurrency.tokens = 255; });
  add([](SweepPoint& p) { p.concurrency.mode = ConcurrencyMode::fixed_per_rank; });
  add([](SweepPoint& p) { p.routing.distribution = "zipf"; });
  add([](SweepPoint& p) { p.placement = "round_robin"; });
  add([](SweepPoint& p) { p.redundant_slots = 8; });
  add([](SweepPoint& p) { p.exchange_unit = ExchangeUnit::rank; });
  add([](SweepPoint& p) { p.transport = "alltoallv"; });
  add([](SweepPoint& p) { p.capacity_factor = 1.5; });
  add([](SweepPoint& p) { p.launch = Launch::graph; });
  add([](SweepPoint& p) { p.grouped_gemm = "loop"; });
  add([](SweepPoint& p) { p.dtype = DType::fp32; });
  add([](SweepPoint& p) { p.mapping = Mapping::spread; });
  add([](SweepPoint& p) { p.groups = Groups::single; });
  add([](SweepPoint& p) { p.weight_cache = WeightCache::warm; });
  add([](SweepPoint& p) { p.layers = 2; });
  add([](SweepPoint& p) { p.iterations = 2; });
  add([](SweepPoint& p) { p.repeat = 1; });
  add([](SweepPoint& p) { p.seed = 2; });
  add([](SweepPoint& p) { p.step = 1; });
  add([](SweepPoint& p) { p.model.ffn_dim = 3; });
}

TEST(Plan, IsTheProductOfTheAxes) {
  const Plan plan = make_plan(small_spec());
  ASSERT_EQ(plan.points.size(), 4U);
  EXPECT_EQ(plan.points[0].ep_size, 1);
  EXPECT_EQ(plan.points[1].concurrency.mode, ConcurrencyMode::fixed_per_rank);
  EXPECT_EQ(plan.points[2].ep_size, 2);
}

// Every repeat has all points, in an order of its own.
TEST(Plan, RepeatsAreOutermostAndShuffled) {
  SweepSpec spec = small_spec();
  spec.repeats = 20;
  const Plan plan = make_plan(spec);
  ASSERT_EQ(plan.points.size(), 80U);
  std::set<int> first_sizes;
  for (std::size_t i = 0; i < 80; ++i) {
    const SweepPoint& point = plan.points[i];
    EXPECT_EQ(point.index, static_cast<int>(i));
    EXPECT_EQ(point.repeat, static_cast<int>(i / 4));
    EXPECT_EQ(point.concurrency.mode,
              i % 2 == 0 ? ConcurrencyMode::fixed_global : ConcurrencyMode::fixed_per_rank);
    if (i % 4 == 0) first_sizes.insert(point.ep_size);
  }
  EXPECT_EQ(first_sizes, (std::set<int>{1, 2}));
}

TEST(Plan, MorePointsThanAnybodyCouldRunAreRefused) {
  SweepSpec spec = small_spec();  // 4 points a repeat
  spec.repeats = 25'001;
  try {
    make_plan(spec);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("s: the axes make 1e+05 points, more than 100000"));
  }
  spec.repeats = 25'000;
  EXPECT_EQ(make_plan(spec).points.size(), 100'000U);
  // Every point would hold the list: 40 GB.
  spec.concurrency[0] = {.mode = ConcurrencyMode::listed,
                         .tokens_per_rank = std::vector<std::int64_t>(50'000, 1)};
  EXPECT_THROW(make_plan(spec), ConfigError);
}

TEST(Plan, FingerprintFollowsTheSeed) {
  SweepSpec spec = small_spec();
  const std::uint64_t first = make_plan(spec).fingerprint;
  EXPECT_EQ(make_plan(spec).fingerprint, first);
  spec.seed = 2;
  EXPECT_NE(make_plan(spec).fingerprint, first);
}

TEST(GroupLayout, PackedGroupsAreNeighboursAndSpreadOnesFarApart) {
  const GroupLayout packed = group_layout(8, 4, Mapping::packed, Groups::fill);
  EXPECT_THAT(packed.group_of_rank, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(packed.ep_rank_of_rank, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  const GroupLayout spread = group_layout(8, 4, Mapping::spread, Groups::fill);
  EXPECT_THAT(spread.group_of_rank, ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(spread.ep_rank_of_rank, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
}

// Case C06.
TEST(GroupLayout, RanksThatDoNotFitAreNamedIdle) {
  EXPECT_EQ(group_layout(32, 8, Mapping::packed, Groups::fill).num_groups, 4);
  EXPECT_EQ(group_layout(32, 8, Mapping::packed, Groups::single).idle_ranks.size(), 24U);
  EXPECT_THAT(group_layout(12, 8, Mapping::packed, Groups::fill).idle_ranks,
              ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(group_layout(5, 2, Mapping::spread, Groups::fill).idle_ranks, ElementsAre(4));
}

TEST(GroupLayout, EveryGroupHasEveryEpRankOnce) {
  for (int world = 1; world <= 13; ++world) {
    for (int ep_size = 1; ep_size <= world; ++ep_size) {
      for (const Mapping mapping : {Mapping::packed, Mapping::spread}) {
        for (const Groups groups : {Groups::fill, Groups::single}) {
          const GroupLayout layout = group_layout(world, ep_size, mapping, groups);
          std::set<std::pair<int, int>> places;
          for (std::size_t rank = 0; rank < static_cast<std::size_t>(world); ++rank) {
            if (layout.group_of_rank[rank] < 0) continue;
            EXPECT_LT(layout.group_of_rank[rank], layout.num_groups);
            places.insert({layout.group_of_rank[rank], layout.ep_rank_of_rank[rank]});
          }
          EXPECT_EQ(places.size(), static_cast<std::size_t>(layout.num_groups * ep_size));
          EXPECT_EQ(layout.group_of_rank[0], 0);
          EXPECT_EQ(places.size() + layout.idle_ranks.size(), static_cast<std::size_t>(world));
        }
      }
    }
  }
}

// Case C49.
TEST(CheckWorld, NamesBothNumbersAndWhatWouldFit) {
  SweepSpec spec = small_spec();
  spec.ep_sizes = {2, 4, 8};
  EXPECT_NO_THROW(check_world(spec, 8));
  try {
    check_world(spec, 4);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("EP 8"), HasSubstr("4 ranks"), HasSubstr("2, 4")));
  }
}

TEST(DeclaredPlaces, follow_mapping_and_topology) {
  SweepPoint point;
  point.ep_size = 4;
  EXPECT_FALSE(declared_places(point).has_value());
  point.topology.ranks_per_host = 2;
  EXPECT_EQ(declared_places(point)->host_of_rank, (std::vector<int>{0, 0, 1, 1}));
  point.topology.hosts = 4;
  point.mapping = Mapping::spread;
  EXPECT_EQ(declared_places(point)->host_of_rank, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Topology, more_ranks_than_it_has_are_infeasible) {
  SweepPoint point;
  point.model.num_experts = 64;
  point.model.top_k = 2;
  point.ep_size = 32;
  point.topology = {.hosts = 4, .ranks_per_host = 4};
  EXPECT_THAT(*infeasible_reason(point), testing::HasSubstr("more than the 16 ranks"));
}

TEST(CheckWorld, topology_describes_the_launch) {
  SweepSpec spec;
  spec.ep_sizes = {2};
  spec.topology = {.hosts = 2, .ranks_per_host = 2};
  check_world(spec, 4);
  EXPECT_THROW(check_world(spec, 8), ConfigError);
}

}  // namespace
}  // namespace epsweep
