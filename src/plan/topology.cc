#include "plan/topology.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "base/error.h"
#include "plan/yaml_reader.h"

namespace epsweep {
namespace {

constexpr std::int64_t kMaxRanks = 1'000'000;

std::vector<int> read_by_rank(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::list)
    fail_at(node, "expected a list with one number for each rank");
  std::vector<int> numbers;
  for (const YamlNode* item : read_items(node)) {
    numbers.push_back(static_cast<int>(read_count(*item, 0, kMaxRanks)));
  }
  return numbers;
}

// Numbers in order of first appearance, from 0.
struct Renumbered {
  std::vector<int> numbers;
  int count = 0;
};
template <typename Of>
Renumbered renumber(const std::vector<int>& world_ranks, Of of) {
  Renumbered result;
  std::vector<int> seen;
  for (const int rank : world_ranks) {
    const auto found = std::ranges::find(seen, of(rank));
    result.numbers.push_back(static_cast<int>(found - seen.begin()));
    if (found == seen.end()) seen.push_back(of(rank));
  }
  result.count = static_cast<int>(seen.size());
  return result;
}

void refuse_contradictions(const YamlNode& node, const MapReader& map, const Topology& topology) {
  if (!topology.declared())
    fail_at(node, "says nothing about hosts: ranks_per_host or host_of_rank");
  if (topology.ranks_per_host > 0 && !topology.host_of_rank.empty()) {
    fail_at(*map.find("host_of_rank"), "ranks_per_host is given too; one of both");
  }
  if (topology.hosts > 0 && topology.ranks_per_host == 0) {
    fail_at(*map.find("hosts"), "needs ranks_per_host; host_of_rank says the number by itself");
  }
  if (topology.domain_size > 0 && !topology.domain_of_rank.empty()) {
    fail_at(*map.find("domain_of_rank"), "domain_size is given too; one of both");
  }
  const auto listed = static_cast<int>(topology.domain_of_rank.size());
  if (listed == 0 || listed == topology.num_ranks()) return;
  fail_at(*map.find("domain_of_rank"),
          fmt::format("lists {} ranks, the hosts have {}", listed,
                      topology.num_ranks() == 0 ? "no limit: give 'hosts' too"
                                                : std::to_string(topology.num_ranks())));
}

}  // namespace

int Topology::num_ranks() const {
  return host_of_rank.empty() ? hosts * ranks_per_host : static_cast<int>(host_of_rank.size());
}

int Topology::host_of(int rank) const {
  EPS_EXPECT(declared() && rank >= 0 && (num_ranks() == 0 || rank < num_ranks()),
             "no such rank in the topology");
  return host_of_rank.empty() ? rank / ranks_per_host
                              : host_of_rank[static_cast<std::size_t>(rank)];
}

int Topology::domain_of(int rank) const {
  if (domain_size > 0) return rank / domain_size;
  if (!domain_of_rank.empty()) return domain_of_rank.at(static_cast<std::size_t>(rank));
  return host_of(rank);
}

const std::vector<std::string>& topology_keys() {
  static const std::vector<std::string> keys = {"hosts", "ranks_per_host", "domain_size",
                                                "host_of_rank", "domain_of_rank"};
  return keys;
}

Topology read_topology(const YamlNode& node) {
  const MapReader map(node, topology_keys());
  const auto count = [&map](const char* key) {
    const YamlNode* value = map.find(key);
    return value == nullptr ? 0 : static_cast<int>(read_count(*value, 1, kMaxRanks));
  };
  const auto list = [&map](const char* key) {
    const YamlNode* value = map.find(key);
    return value == nullptr ? std::vector<int>{} : read_by_rank(*value);
  };
  Topology topology{.hosts = count("hosts"),
                    .ranks_per_host = count("ranks_per_host"),
                    .domain_size = count("domain_size"),
                    .host_of_rank = list("host_of_rank"),
                    .domain_of_rank = list("domain_of_rank")};
  if (std::int64_t{topology.hosts} * topology.ranks_per_host > kMaxRanks) {
    fail_at(node, fmt::format("hosts x ranks_per_host is above {} ranks", kMaxRanks));
  }
  refuse_contradictions(node, map, topology);
  return topology;
}

Json topology_json(const Topology& topology) {
  if (!topology.declared()) return nullptr;
  Json json = Json::object();
  const auto put = [&json](const char* key, int value) {
    if (value > 0) json[key] = value;
  };
  put("hosts", topology.hosts);
  put("ranks_per_host", topology.ranks_per_host);
  put("domain_size", topology.domain_size);
  if (!topology.host_of_rank.empty()) json["host_of_rank"] = topology.host_of_rank;
  if (!topology.domain_of_rank.empty()) json["domain_of_rank"] = topology.domain_of_rank;
  return json;
}

std::vector<int> GroupPlaces::ranks_per_host() const {
  std::vector<int> ranks(static_cast<std::size_t>(num_hosts), 0);
  for (const int host : host_of_rank) ++ranks[static_cast<std::size_t>(host)];
  return ranks;
}

GroupPlaces group_places(const Topology& topology, const std::vector<int>& world_ranks) {
  const auto hosts = renumber(world_ranks, [&](int rank) { return topology.host_of(rank); });
  const auto domains = renumber(world_ranks, [&](int rank) { return topology.domain_of(rank); });
  return {.host_of_rank = hosts.numbers,
          .domain_of_rank = domains.numbers,
          .num_hosts = hosts.count,
          .num_domains = domains.count};
}

}  // namespace epsweep
