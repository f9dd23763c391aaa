#include "mpi/ep_group.h"

#include "base/error.h"

namespace epsweep {

const EpGroup* EpGroupCache::get(const Key& key, const Place& place) {
  auto found = groups_.find(key);
  if (found == groups_.end()) {
    const Comm comm = world_.split(place.group, place.ep_rank);
    std::optional<EpGroup> group;
    if (place.group >= 0) group.emplace(comm, place.group, place.num_groups);
    found = groups_.emplace(key, group).first;
  }
  if (!found->second.has_value()) {
    EPS_EXPECT(place.group < 0, "a rank that was idle in this layout is not any more");
    return nullptr;
  }
  const EpGroup& group = *found->second;
  EPS_EXPECT(group.group() == place.group && group.ep_rank() == place.ep_rank,
             "one key for two different group layouts");
  return &group;
}

// In the order of the keys, which all ranks share.
void EpGroupCache::close() {
  for (auto& [key, group] : groups_) {
    if (group.has_value()) group->close();
  }
  groups_.clear();
}

}  // namespace epsweep
