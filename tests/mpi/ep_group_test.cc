// EP groups made from group layouts, on real ranks; any number of them.
#include "mpi/ep_group.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/plan.h"
#include "support/mpi_world.h"

namespace epsweep {
namespace {

EpGroupCache::Place place_in(const GroupLayout& layout, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  return {layout.group_of_rank[index], layout.ep_rank_of_rank[index], layout.num_groups};
}

EpGroupCache::Key key_of(int ep_size, Mapping mapping, Groups groups) {
  return {ep_size, static_cast<int>(mapping), static_cast<int>(groups)};
}

// The world ranks of this rank's group, by EP rank.
std::vector<std::int64_t> members(const EpGroup& group) {
  return group.comm().all_gather(mpi_world().rank());
}

std::vector<std::int64_t> members_of(const GroupLayout& layout, int group) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(layout.ep_size), -1);
  for (std::size_t rank = 0; rank < layout.group_of_rank.size(); ++rank) {
    if (layout.group_of_rank[rank] != group) continue;
    ranks[static_cast<std::size_t>(layout.ep_rank_of_rank[rank])] = static_cast<std::int64_t>(rank);
  }
  return ranks;
}

TEST(EpGroupCache, GroupsAreThoseOfTheLayout) {
  const Comm& world = mpi_world();
  EpGroupCache cache(world);
  for (int ep_size = 1; ep_size <= world.size(); ++ep_size) {
    for (const Mapping mapping : {Mapping::packed, Mapping::spread}) {
      for (const Groups groups : {Groups::fill, Groups::single}) {
        const GroupLayout layout = group_layout(world.size(), ep_size, mapping, groups);
        const auto place = place_in(layout, world.rank());
        const EpGroup* group = cache.get(key_of(ep_size, mapping, groups), place);
        ASSERT_EQ(group == nullptr, place.group < 0);
        const auto working = world.all_sum(std::int64_t{group != nullptr});
        EXPECT_EQ(working, layout.num_groups * ep_size);
        EXPECT_EQ(working + std::ssize(layout.idle_ranks), world.size());
        if (group == nullptr) continue;
        EXPECT_EQ(group->ep_size(), ep_size);
        EXPECT_EQ(group->ep_rank(), place.ep_rank);
        EXPECT_EQ(group->group(), place.group);
        EXPECT_EQ(group->num_groups(), layout.num_groups);
        EXPECT_EQ(members(*group), members_of(layout, place.group));
      }
    }
  }
  cache.close();
  EXPECT_EQ(world.all_sum(std::int64_t{1}), world.size());
}

TEST(EpGroupCache, MakesAGroupOnce) {
  const Comm& world = mpi_world();
  EpGroupCache cache(world);
  const auto layout = group_layout(world.size(), 1, Mapping::packed, Groups::single);
  const auto key = key_of(1, Mapping::packed, Groups::single);
  const auto place = place_in(layout, world.rank());
  const EpGroup* first = cache.get(key, place);
  // Not collective any more: were it made again, rank 0 alone would hang here.
  if (world.rank() == 0) {
    EXPECT_EQ(cache.get(key, place), first);
  }
  EXPECT_EQ(first == nullptr, world.rank() != 0);
  cache.close();
}

TEST(EpGroupCache, RefusesOneKeyForTwoLayouts) {
  const Comm& world = mpi_world();
  EpGroupCache cache(world);
  const EpGroupCache::Key key{1, 0, 0};
  const bool idle = world.rank() != 0;
  cache.get(key, idle ? EpGroupCache::Place{} : EpGroupCache::Place{0, 0, 1});
  EXPECT_THROW(cache.get(key, {world.size(), 0, world.size()}), RunError);
  cache.close();
}

}  // namespace
}  // namespace epsweep
