#include "plan/topology.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace epsweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Topology read(const std::string& text) {
  return read_topology(parse_yaml(text, "t.yaml"));
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Topology, regular_hosts_are_domains) {
  const Topology topology = read("{hosts: 2, ranks_per_host: 4}");
  EXPECT_EQ(topology.num_ranks(), 8);
  EXPECT_EQ(topology.host_of(3), 0);
  EXPECT_EQ(topology.host_of(4), 1);
  EXPECT_EQ(topology.domain_of(4), 1);
}

TEST(Topology, hosts_without_an_end) {
  const Topology topology = read("{ranks_per_host: 8}");
  EXPECT_EQ(topology.num_ranks(), 0);
  EXPECT_EQ(topology.host_of(1023), 127);
}

TEST(Topology, a_domain_may_span_hosts_or_divide_one) {
  const Topology wide = read("{hosts: 8, ranks_per_host: 4, domain_size: 32}");
  EXPECT_EQ(wide.host_of(31), 7);
  EXPECT_EQ(wide.domain_of(31), 0);
  const Topology narrow = read("{ranks_per_host: 4, domain_size: 2}");
  EXPECT_EQ(narrow.domain_of(2), 1);
  EXPECT_EQ(narrow.host_of(2), 0);
}

TEST(Topology, listed_by_rank) {
  const Topology topology = read("{host_of_rank: [0, 1, 0, 1], domain_of_rank: [0, 0, 0, 0]}");
  EXPECT_EQ(topology.num_ranks(), 4);
  EXPECT_EQ(topology.host_of(2), 0);
  EXPECT_EQ(topology.domain_of(3), 0);
}

TEST(Topology, contradictions_are_refused) {
  EXPECT_THAT(error_of("{domain_size: 8}"), HasSubstr("says nothing about hosts"));
  EXPECT_THAT(error_of("{hosts: 2}"), HasSubstr("says nothing about hosts"));
  EXPECT_THAT(error_of("{ranks_per_host: 2, host_of_rank: [0]}"), HasSubstr("one of both"));
  EXPECT_THAT(error_of("{hosts: 1, host_of_rank: [0]}"), HasSubstr("needs ranks_per_host"));
  EXPECT_THAT(error_of("{host_of_rank: [0, 0], domain_of_rank: [0]}"),
              HasSubstr("lists 1 ranks, the hosts have 2"));
  EXPECT_THAT(error_of("{ranks_per_host: 2, domain_of_rank: [0]}"), HasSubstr("give 'hosts' too"));
  EXPECT_THAT(error_of("{host_of_rank: [0], domain_of_rank: [0], domain_size: 1}"),
              HasSubstr("one of both"));
  EXPECT_THAT(error_of("{ranks_per_hosts: 2}"), HasSubstr("ranks_per_host"));
  EXPECT_THAT(error_of("{hosts: 1000000, ranks_per_host: 1000000}"), HasSubstr("above"));
  EXPECT_THAT(error_of("{host_of_rank: 0}"), HasSubstr("expected a list"));
}

TEST(Topology, group_places_count_from_zero_in_rank_order) {
  const Topology topology = read("{hosts: 4, ranks_per_host: 2, domain_size: 4}");
  const GroupPlaces places = group_places(topology, {4, 5, 6, 0});
  EXPECT_THAT(places.host_of_rank, ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(places.domain_of_rank, ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(places.num_hosts, 3);
  EXPECT_EQ(places.num_domains, 2);
  EXPECT_THAT(places.ranks_per_host(), ElementsAre(2, 1, 1));
}

TEST(Topology, json_keeps_what_was_declared) {
  EXPECT_EQ(topology_json({}), Json(nullptr));
  EXPECT_EQ(topology_json(read("{ranks_per_host: 8, domain_size: 72}")),
            Json::parse(R"({"ranks_per_host": 8, "domain_size": 72})"));
}

}  // namespace
}  // namespace epsweep
