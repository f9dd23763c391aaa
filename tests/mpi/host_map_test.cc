// The host map where all ranks share this machine, and its arithmetic on invented hosts.
#include "mpi/host_map.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/host_probe.h"
#include "support/mpi_world.h"

namespace epsweep {
namespace {

TEST(HostMap, OneHostWithLocalRanksInWorldOrder) {
  const Comm& world = mpi_world();
  const HostMap map = make_host_map(world);
  EXPECT_EQ(map.num_hosts, 1);
  ASSERT_EQ(map.ranks.size(), static_cast<std::size_t>(world.size()));
  std::set<int> pids;
  for (std::size_t rank = 0; rank < map.ranks.size(); ++rank) {
    const RankPlace& place = map.ranks[rank];
    EXPECT_EQ(place.host, 0);
    EXPECT_EQ(place.local_rank, static_cast<int>(rank));
    EXPECT_EQ(place.local_size, world.size());
    EXPECT_EQ(place.host_name, host_name());
    EXPECT_EQ(place.allowed_cores, static_cast<int>(place.cores.size()));
    pids.insert(place.pid);
  }
  EXPECT_EQ(pids.size(), map.ranks.size());
  const RankPlace& own = map.ranks[static_cast<std::size_t>(world.rank())];
  EXPECT_EQ(own.pid, getpid());
  EXPECT_EQ(own.allowed_cores, num_allowed_cores());
}

TEST(HostMap, WorksOnPartOfTheWorld) {
  const Comm& world = mpi_world();
  Comm part = world.split(world.rank() % 2, -world.rank());
  const HostMap map = make_host_map(part);
  EXPECT_EQ(map.num_hosts, 1);
  ASSERT_EQ(map.ranks.size(), static_cast<std::size_t>(part.size()));
  EXPECT_EQ(map.ranks[static_cast<std::size_t>(part.rank())].pid, getpid());
  part.close();
}

RankPlace place_of(int host, std::vector<int> cores) {
  RankPlace place;
  place.host = host;
  place.allowed_cores = static_cast<int>(cores.size());
  place.cores = std::move(cores);
  return place;
}

TEST(BusiestHost, BoundRanksOnDifferentCoresDoNotOversubscribe) {
  const HostMap map{1, {place_of(0, {0}), place_of(0, {1}), place_of(0, {2}), place_of(0, {2})}};
  EXPECT_EQ(busiest_host(map, {0, 1, 2}).cores, 3);
  EXPECT_FALSE(busiest_host(map, {0, 1, 2}).oversubscribed());
  EXPECT_TRUE(busiest_host(map, {2, 3}).oversubscribed());
}

TEST(BusiestHost, FreeRanksShareTheirCores) {
  const HostMap map{1, {place_of(0, {0, 1}), place_of(0, {0, 1}), place_of(0, {0, 1})}};
  EXPECT_FALSE(busiest_host(map, {0, 2}).oversubscribed());
  const CoreShare share = busiest_host(map, {0, 1, 2});
  EXPECT_EQ(share.ranks, 3);
  EXPECT_EQ(share.cores, 2);
}

TEST(BusiestHost, IsTheOneWithFewestCoresPerWorkingRank) {
  const HostMap map{2, {place_of(0, {0, 1, 2, 3}), place_of(0, {0, 1, 2, 3}), place_of(1, {0})}};
  EXPECT_EQ(busiest_host(map, {0, 1, 2}).cores, 1);
  EXPECT_EQ(busiest_host(map, {0, 1}).cores, 4);
  EXPECT_EQ(busiest_host(map, {}).ranks, 0);
}

}  // namespace
}  // namespace epsweep
