// One EP group of a launch, seen from one of its ranks; and the cache of them.
#pragma once

#include <map>
#include <optional>
#include <tuple>

#include "mpi/comm.h"

namespace epsweep {

class EpGroup {
 public:
  EpGroup(Comm comm, int group, int num_groups)
      : comm_(std::move(comm)), group_(group), num_groups_(num_groups) {}

  int ep_size() const { return comm_.size(); }
  int ep_rank() const { return comm_.rank(); }
  int group() const { return group_; }
  int num_groups() const { return num_groups_; }
  const Comm& comm() const { return comm_; }
  void close() { comm_.close(); }

 private:
  Comm comm_;
  int group_ = 0, num_groups_ = 0;
};

// Groups are made once per (ep_size, mapping, groups) since communicators are expensive.
// get() and close() are collective over the world, idle ranks included.
class EpGroupCache {
 public:
  explicit EpGroupCache(const Comm& world) : world_(world) {}

  // What group_layout() (src/plan/plan.h) says for this rank; -1 and -1 for an idle one, which
  // gets nullptr. `key` tells layouts apart.
  struct Place {
    int group = -1, ep_rank = -1, num_groups = 0;
  };
  using Key = std::tuple<int, int, int>;
  const EpGroup* get(const Key& key, const Place& place);
  void close();

 private:
  const Comm& world_;
  std::map<Key, std::optional<EpGroup>> groups_;
};

}  // namespace epsweep
