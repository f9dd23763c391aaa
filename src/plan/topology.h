// Hosts and scale-up domains of a launch, as an experiment declares them.
#pragma once

#include <vector>

#include "base/json.h"
#include "plan/yaml_tree.h"

namespace epsweep {

// Either regular (ranks_per_host, in blocks of neighbouring world ranks) or listed by world rank.
// A scale-up domain (NVLink, NVSwitch) may be a part of a host or span several; where nothing is
// said about domains every host is one.
struct Topology {
  int hosts = 0;                                  // 0: as many as the ranks need
  int ranks_per_host = 0;                         // 0: listed, or nothing is declared
  int domain_size = 0;                            // ranks; 0: listed, or hosts are the domains
  std::vector<int> host_of_rank, domain_of_rank;  // [world ranks]; empty: regular

  bool declared() const { return ranks_per_host > 0 || !host_of_rank.empty(); }
  // World ranks that are described; 0 for any number.
  int num_ranks() const;
  // Of a world rank below num_ranks().
  int host_of(int rank) const;
  int domain_of(int rank) const;
};

// Throws ConfigError with file, line and path.
Topology read_topology(const YamlNode& node);
const std::vector<std::string>& topology_keys();

// Only what was declared; null where nothing was.
Json topology_json(const Topology& topology);

// Where the ranks of one EP group live: [ep_size], hosts and domains numbered from 0 in the order
// in which ranks meet them.
struct GroupPlaces {
  std::vector<int> host_of_rank, domain_of_rank;
  int num_hosts = 0, num_domains = 0;

  // Ranks of the group on each host: [num_hosts].
  std::vector<int> ranks_per_host() const;
};

// `world_ranks`: the group's members, by EP rank. Groups of one launch may live differently.
GroupPlaces group_places(const Topology& topology, const std::vector<int>& world_ranks);

}  // namespace epsweep
