#include "mpi/host_map.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <unistd.h>

#include "base/error.h"
#include "base/host_probe.h"

namespace epsweep {
namespace {

// Everybody's values, by rank, on every rank.
std::vector<std::vector<int>> share_lists(const Comm& world, const std::vector<int>& values) {
  const std::vector<std::int64_t> own(values.begin(), values.end());
  const auto lengths = world.all_gather(static_cast<std::int64_t>(own.size()));
  auto all = world.gather(std::span<const std::int64_t>(own), 0);
  const auto total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  all.resize(static_cast<std::size_t>(total));
  world.broadcast(std::span<std::int64_t>(all), 0);
  std::vector<std::vector<int>> lists;
  auto begin = all.begin();
  for (const std::int64_t length : lengths) {
    std::vector<int>& list = lists.emplace_back();
    for (auto value = begin; value != begin + length; ++value) {
      list.push_back(static_cast<int>(*value));
    }
    begin += length;
  }
  return lists;
}

// Everybody's text, by rank, on every rank; texts must not hold '\0'.
std::vector<std::string> share_texts(const Comm& world, const std::string& own) {
  std::string joined;
  for (const std::string& text : world.gather(own, 0)) joined += text + '\0';
  joined = world.broadcast(joined, 0);
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < joined.size(); begin += texts.back().size() + 1) {
    texts.emplace_back(joined.c_str() + begin);
  }
  return texts;
}

// For every rank the lowest world rank on its host.
std::vector<std::int64_t> host_leaders(const Comm& world) {
  Comm host = world.split_by_host();
  const std::int64_t leader = host.all_min(world.rank());
  host.close();
  return world.all_gather(leader);
}

}  // namespace

HostMap make_host_map(const Comm& world) {
  const auto leaders = host_leaders(world);
  const auto pids = world.all_gather(getpid());
  const std::vector<int> own_cores = allowed_cores();
  auto cores = share_lists(world, own_cores);
  auto numa_nodes = share_lists(world, numa_nodes_of(own_cores));
  const auto names = share_texts(world, host_name());
  EPS_EXPECT(names.size() == leaders.size(), "one host name per rank");

  // Leaders come in increasing order when seen for the first time, since each is its own leader.
  std::map<std::int64_t, int> host_of_leader, ranks_on_host;
  HostMap map;
  for (std::size_t rank = 0; rank < leaders.size(); ++rank) {
    const int next_host = static_cast<int>(host_of_leader.size());
    RankPlace place;
    place.host = host_of_leader.try_emplace(leaders[rank], next_host).first->second;
    place.local_rank = ranks_on_host[leaders[rank]]++;
    place.cores = std::move(cores[rank]);
    place.numa_nodes = std::move(numa_nodes[rank]);
    place.allowed_cores = static_cast<int>(place.cores.size());
    place.pid = static_cast<int>(pids[rank]);
    place.host_name = names[rank];
    map.ranks.push_back(std::move(place));
  }
  for (std::size_t rank = 0; rank < leaders.size(); ++rank) {
    map.ranks[rank].local_size = ranks_on_host[leaders[rank]];
  }
  map.num_hosts = static_cast<int>(host_of_leader.size());
  return map;
}

CoreShare busiest_host(const HostMap& map, const std::vector<int>& working_ranks) {
  std::map<int, int> ranks_of_host;
  std::map<int, std::set<int>> cores_of_host;
  for (const int rank : working_ranks) {
    const RankPlace& place = map.ranks.at(static_cast<std::size_t>(rank));
    ++ranks_of_host[place.host];
    cores_of_host[place.host].insert(place.cores.begin(), place.cores.end());
  }
  CoreShare busiest;
  for (const auto& [host, ranks] : ranks_of_host) {
    const CoreShare share{ranks, static_cast<int>(cores_of_host[host].size())};
    // ranks / cores, compared without dividing
    if (busiest.ranks == 0 || share.ranks * busiest.cores > busiest.ranks * share.cores) {
      busiest = share;
    }
  }
  return busiest;
}

}  // namespace epsweep
