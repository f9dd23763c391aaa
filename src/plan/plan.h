// A sweep spec to its ordered points, and how EP groups sit in a world.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/sweep_point.h"

namespace epsweep {

struct Plan {
  std::vector<SweepPoint> points;
  // Over all points; ranks compare it once, before anything is exchanged.
  std::uint64_t fingerprint = 0;
};

// The product of the axes. EP size is outside the load ladder, so that one set of prepared weights
// serves neighbours; repeats are outermost, so that repeats of a point are minutes apart.
// Throws ConfigError for more than 100,000 points.
Plan make_plan(const SweepSpec& spec);

// Which world ranks do what for one EP size.
struct GroupLayout {
  int ep_size = 1;
  int num_groups = 0;                               // that run
  std::vector<int> idle_ranks;                      // world ranks in no group
  std::vector<int> group_of_rank, ep_rank_of_rank;  // by world rank; -1 for idle
};
GroupLayout group_layout(int world_size, int ep_size, Mapping mapping, Groups groups);
// World ranks of one group, by EP rank.
std::vector<int> members(const GroupLayout& layout, int group);

// Where the ranks of the first group live; absent where no topology is declared. All ranks of the
// topology are the world; where it has no end, the group is.
std::optional<GroupPlaces> declared_places(const SweepPoint& point);

// Throws ConfigError where the topology describes another number of ranks; naming world size, the
// EP sizes that do not fit and those that would.
void check_world(const SweepSpec& spec, int world_size);

}  // namespace epsweep
