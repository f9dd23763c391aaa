// All ranks of these tests share one clock, and some read it with an offset and a drift of their
// own: so the truth is known, and estimates must keep the bounds they state.
#include "mpi/clock_sync.h"

#include <array>
#include <cmath>

#include <gmock/gmock.h>
#include <time.h>

#include "base/host_probe.h"
#include "support/mpi_world.h"

namespace epsweep {
namespace {

using testing::ElementsAre;

void sleep_ms(long ms) {
  const timespec pause{0, ms * 1'000'000};
  nanosleep(&pause, nullptr);
}

// The same on every rank.
double shared_origin_s() {
  double origin_s = monotonic_s();
  mpi_world().broadcast(std::span(&origin_s, 1), 0);
  return origin_s;
}

// Several milliseconds apart, drifting by 0, +50, -50, +100, -100 ... ppm.
RankClock wrong_clock(int rank, double origin_s) {
  const double sign = rank % 2 == 0 ? -1 : 1;
  return {.source = ClockSource::injected,
          .offset_s = 5e-3 * rank * sign,
          .drift_ppm = 50.0 * ((rank + 1) / 2) * sign,
          .origin_s = origin_s};
}

// What an estimate says of `truth` when the host's clock shows host_s.
void expect_within_bound(const ClockMap& map, const RankClock& own, const RankClock& axis,
                         double host_s) {
  const double own_s = own.at(host_s);
  EXPECT_LE(std::abs(map.common_s(own_s) - axis.at(host_s)), map.bound_s)
      << "rank " << mpi_world().rank();
}

struct Ends {
  ClockAlignment before, after;
};

// Aligns twice, checks moments in between and at both ends, and the drift.
Ends align_and_check(const RankClock& own, const RankClock& axis) {
  const Comm& world = mpi_world();
  const ClockDomains domains = find_clock_domains(world, own);
  Ends ends;
  ends.before = align_clocks(world, domains, own);
  const double first_s = monotonic_s();
  sleep_ms(10);
  const double middle_s = monotonic_s();
  sleep_ms(10);
  const double last_s = monotonic_s();
  ends.after = align_clocks(world, domains, own);
  const ClockMap map = clock_map(ends.before, ends.after);
  for (const double host_s : {first_s, middle_s, last_s}) {
    expect_within_bound(map, own, axis, host_s);
  }
  // (1 + axis drift) / (1 + own drift) - 1, where only injected clocks drift
  const double slope = (1 + axis.drift_ppm * 1e-6) / (1 + own.drift_ppm * 1e-6) - 1;
  EXPECT_LE(std::abs(map.slope - slope), map.slope_bound.value() + 1e-12);
  return ends;
}

TEST(ClockDomains, RanksWithEqualKeysShareOne) {
  const ClockDomains domains = clock_domains({"a", "b", "a", "c", "b"});
  EXPECT_THAT(domains.domain_of_rank, ElementsAre(0, 1, 0, 2, 1));
  EXPECT_THAT(domains.leaders, ElementsAre(0, 1, 3));
  EXPECT_EQ(domains.num_domains(), 3);
}

TEST(ClockDomains, RanksWithoutAKeyStandAlone) {
  const ClockDomains domains = clock_domains({"", "", "a", "", "a"});
  EXPECT_THAT(domains.domain_of_rank, ElementsAre(0, 1, 2, 3, 2));
  EXPECT_THAT(domains.leaders, ElementsAre(0, 1, 2, 3));
}

// Ranks 0 and 1 overlap in the barrier; 2 and 3 claim one clock too, but 2 left 1 s before 3 came.
TEST(ClockDomains, OneBootWithTwoClocksIsFoundOut) {
  std::vector<std::string> keys = {"a", "a", "b", "b", "c", ""};
  drop_contradicted_keys({{10, 13}, {12, 14}, {10, 13}, {14, 15}, {99, 99}, {1, 2}}, keys);
  EXPECT_THAT(keys, ElementsAre("a", "a", "", "", "c", ""));
}

TEST(ClockSync, OneKernelIsOneDomainWithoutAnyError) {
  const Comm& world = mpi_world();
  const RankClock clock;
  const ClockDomains domains = find_clock_domains(world, clock);
  EXPECT_EQ(domains.num_domains(), 1);
  const Ends ends = align_and_check(clock, clock);
  for (const ClockAlignment& alignment : {ends.before, ends.after}) {
    EXPECT_EQ(alignment.offset_s, 0);
    EXPECT_EQ(alignment.bound_s, 0);
  }
}

TEST(ClockSync, InjectedClocksAreDomainsOfTheirOwn) {
  const Comm& world = mpi_world();
  const double origin_s = shared_origin_s();
  const bool wrong = world.rank() % 2 == 1;
  const ClockDomains domains =
      find_clock_domains(world, wrong ? wrong_clock(world.rank(), origin_s) : RankClock{});
  EXPECT_EQ(domains.num_domains(), 1 + world.size() / 2);
  for (int rank = 0; rank < world.size(); ++rank) {
    const int domain = domains.domain_of_rank[static_cast<std::size_t>(rank)];
    EXPECT_EQ(domain, rank % 2 == 0 ? 0 : (rank + 1) / 2);
    if (rank % 2 == 1) {
      EXPECT_EQ(domains.leaders[static_cast<std::size_t>(domain)], rank);
    }
  }
}

// 5 ms and 50 ppm on the odd ranks, between ranks that need nothing.
TEST(ClockSync, EstimatesKeepTheirBound) {
  const Comm& world = mpi_world();
  const double origin_s = shared_origin_s();
  const bool wrong = world.rank() % 2 == 1;
  const RankClock own = wrong ? RankClock{.source = ClockSource::injected,
                                          .offset_s = -5e-3,
                                          .drift_ppm = -50,
                                          .origin_s = origin_s}
                              : RankClock{};
  for (int turn = 0; turn < 5; ++turn) {
    const Ends ends = align_and_check(own, RankClock{});
    EXPECT_EQ(ends.before.bound_s > 0, wrong);
    EXPECT_EQ(ends.after.offset_s != 0, wrong);
  }
}

// A tree as deep as the ranks allow: at 8 ranks, rank 7 is three edges from rank 0.
TEST(ClockSync, BoundsHoldThroughATreeOfDomains) {
  const Comm& world = mpi_world();
  const double origin_s = shared_origin_s();
  const RankClock axis = wrong_clock(0, origin_s);
  EXPECT_EQ(find_clock_domains(world, wrong_clock(world.rank(), origin_s)).num_domains(),
            world.size());
  for (int turn = 0; turn < 5; ++turn) {
    const Ends ends = align_and_check(wrong_clock(world.rank(), origin_s), axis);
    EXPECT_EQ(ends.before.bound_s > 0, world.rank() > 0);
  }
}

// The common axis is rank 0's clock even where that is the wrong one.
TEST(ClockSync, FollowsAWrongClockOfRankZero) {
  const Comm& world = mpi_world();
  const RankClock axis{.source = ClockSource::injected,
                       .offset_s = 0.25,
                       .drift_ppm = 200,
                       .origin_s = shared_origin_s()};
  align_and_check(world.rank() == 0 ? axis : RankClock{}, axis);
}

// Ranks 2 and 3 stand for a second host: 3 is told what its leader found, to the last bit.
TEST(ClockSync, MembersOfADomainGetTheirLeadersValues) {
  const Comm& world = mpi_world();
  std::vector<std::string> keys;
  for (int rank = 0; rank < world.size(); ++rank) keys.push_back(rank < 2 ? "here" : "there");
  const ClockDomains domains = clock_domains(keys);
  const RankClock axis;
  RankClock own{.source = ClockSource::injected,
                .offset_s = -5e-3,
                .drift_ppm = -50,
                .origin_s = shared_origin_s()};
  if (world.rank() < 2) own = axis;
  const ClockAlignment before = align_clocks(world, domains, own);
  const double host_s = monotonic_s();
  sleep_ms(2);
  const ClockAlignment after = align_clocks(world, domains, own);
  expect_within_bound(clock_map(before, after), own, axis, host_s);
  const std::vector<double> values = world.gather(
      std::span<const double>(std::array{before.own_s, before.offset_s, before.bound_s}), 0);
  for (std::size_t i = 9; i < values.size(); ++i) EXPECT_EQ(values[i], values[6 + i % 3]) << i;
}

}  // namespace
}  // namespace epsweep
