#include "app/launch_facts.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

// Two hosts with two ranks each; `cores` as the launcher bound them.
HostMap two_hosts(std::vector<int> first_cores, std::vector<int> second_cores) {
  HostMap map;
  map.num_hosts = 2;
  for (int rank = 0; rank < 4; ++rank) {
    RankPlace place;
    place.host = rank / 2;
    place.local_rank = rank % 2;
    place.local_size = 2;
    place.cores = rank % 2 == 0 ? first_cores : second_cores;
    place.allowed_cores = static_cast<int>(place.cores.size());
    map.ranks.push_back(place);
  }
  return map;
}

TEST(CoresPerRank, AreSharedWithTheRanksOnThem) {
  EXPECT_EQ(cores_per_rank(two_hosts({0, 1, 2, 3}, {0, 1, 2, 3}), 0), 2);  // not bound
  EXPECT_EQ(cores_per_rank(two_hosts({0, 1, 2}, {3, 4, 5}), 1), 3);        // bound apart
  EXPECT_EQ(cores_per_rank(two_hosts({0}, {0}), 3), 1);                    // oversubscribed
  EXPECT_EQ(cores_per_rank(two_hosts({0, 1, 2}, {2, 3, 4}), 0), 2);        // one core shared
}

TEST(ForeignLoad, IsWhatTheHostUsedAndOurRanksDidNot) {
  const HostMap hosts = two_hosts({0, 1}, {0, 1});
  // Host 0: 4 core seconds in all, busy 3, ours 2. Host 1: busy 4, ours 1.
  const std::vector<RankLoad> loads = {{0, 2.0, 1.0, 3.0}, {1, 2.0, 1.0, 3.0}, {2, 2.0, 1.0, 4.0}};
  EXPECT_DOUBLE_EQ(foreign_load(hosts, loads, 2).value(), 0.75);
  EXPECT_DOUBLE_EQ(foreign_load(hosts, {loads[0], loads[1]}, 2).value(), 0.25);
}

TEST(ForeignLoad, IsAbsentWhereClockTicksCannotTell) {
  const HostMap hosts = two_hosts({0, 1}, {0, 1});
  EXPECT_FALSE(foreign_load(hosts, {{0, 0.2, 0.1, 0.3}}, 2).has_value());
  EXPECT_FALSE(foreign_load(hosts, {{0, 2.0, 1.0, std::nullopt}}, 2).has_value());
  EXPECT_FALSE(foreign_load(hosts, {}, 2).has_value());
}

TEST(ForeignLoad, StaysBetweenNothingAndTheWholeHost) {
  const HostMap hosts = two_hosts({0, 1}, {0, 1});
  EXPECT_EQ(foreign_load(hosts, {{0, 1.0, 1.5, 1.4}}, 2), 0.0);
  EXPECT_EQ(foreign_load(hosts, {{0, 1.0, 0.0, 2.5}}, 2), 1.0);
}

}  // namespace
}  // namespace epsweep
