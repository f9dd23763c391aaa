// Which ranks share a host, from MPI's shared-memory split and never from host names.
#pragma once

#include <string>
#include <vector>

#include "mpi/comm.h"

namespace epsweep {

struct RankPlace {
  int host = 0;        // from 0, in order of the lowest world rank on it
  int local_rank = 0;  // on its host
  int local_size = 1;  // ranks on its host
  int allowed_cores = 1;
  std::vector<int> cores;  // their numbers: ranks bound to one core each may or may not share it
  std::vector<int> numa_nodes;  // of those cores; empty where the system does not tell
  int pid = 0;
  std::string host_name;  // information only; commas and the like possible
};

struct HostMap {
  int num_hosts = 0;
  std::vector<RankPlace> ranks;  // [world_size], the same on every rank
};

// Collective over the world.
HostMap make_host_map(const Comm& world);

// Cores of a host that the given world ranks (those that work at the same time) may use together
// and how many of them there are, for the busiest host: more ranks than cores means their times
// are not fit for comparison. Zeros for no ranks.
struct CoreShare {
  int ranks = 0, cores = 0;
  bool oversubscribed() const { return ranks > cores; }
};
CoreShare busiest_host(const HostMap& map, const std::vector<int>& working_ranks);

}  // namespace epsweep
