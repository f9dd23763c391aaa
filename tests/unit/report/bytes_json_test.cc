#include "report/bytes_json.h"

#include <gtest/gtest.h>

#include "sample_point.h"

namespace epsweep {
namespace {

using testing::sample_point;
using testing::sample_workload;

// The hand-worked trace of the traffic tests on cyclic hosts.
Traffic cyclic_traffic() {
  Traffic traffic;
  traffic.row_bytes = 2048;
  traffic.a_copies = 16;
  traffic.a_self_copies = 3;
  traffic.b_copies = 13;
  traffic.b_self_copies = 2;
  traffic.d_copies = 11;
  traffic.domains = {.c_copies = 12, .e_copies = 7, .a_intra_copies = 3, .b_intra_copies = 3};
  traffic.max_d_copies_sent = 4;
  traffic.max_d_copies_received = 3;
  return traffic;
}

TEST(BytesJson, every_letter_and_part) {
  const Json json = traffic_json(cyclic_traffic());
  EXPECT_EQ(json["a_remote_copies"], 13);
  EXPECT_EQ(json["a_intra_copies"], 3);
  EXPECT_EQ(json["a_inter_copies"], 10);
  EXPECT_EQ(json["b_intra_copies"], 3);
  EXPECT_EQ(json["b_inter_copies"], 8);
  EXPECT_EQ(json["b_inter_bytes"], 8 * 2048);
  EXPECT_EQ(json["c_total_copies"], 12);
  EXPECT_EQ(json["d_total_bytes"], 11 * 2048);
  EXPECT_EQ(json["e_total_bytes"], 14336);
  EXPECT_EQ(json["max_d_copies_sent"], 4);
  EXPECT_EQ(json["max_d_copies_received"], 3);
}

TEST(BytesJson, unknown_places_are_null_and_not_guessed) {
  const Json json = bytes_json(sample_workload(sample_point(4, 8)));
  EXPECT_TRUE(json["places"].is_null());
  EXPECT_TRUE(json["num_domains"].is_null());
  EXPECT_EQ(json["dispatch"], json["combine"]);
  for (const std::string name :
       {"a_intra", "a_inter", "b_intra", "b_inter", "c_total", "e_total"}) {
    ASSERT_TRUE(json["dispatch"].contains(name + "_copies")) << name;
    EXPECT_TRUE(json["dispatch"][name + "_copies"].is_null()) << name;
    EXPECT_TRUE(json["dispatch"][name + "_bytes"].is_null()) << name;
  }
  EXPECT_EQ(json["dispatch"]["d_total_copies"], 6);
}

TEST(BytesJson, says_who_knows_the_places) {
  PointWorkload work = sample_workload(sample_point(4, 8));
  work.traffic = cyclic_traffic();
  work.places = KnownPlaces{{.num_hosts = 2, .num_domains = 2}, PlacesFrom::measured_hosts};
  EXPECT_EQ(bytes_json(work)["places"], "measured hosts");
  EXPECT_EQ(bytes_json(work)["num_domains"], 2);
  work.places->from = PlacesFrom::declared;
  EXPECT_EQ(bytes_json(work)["places"], "declared");
}

TEST(BytesJson, copies_per_token) {
  const Json json = copies_json(copies_per_token(cyclic_traffic(), 8));
  EXPECT_EQ(json["a"], 2.0);
  EXPECT_EQ(json["b"], 13 / 8.0);
  EXPECT_EQ(json["b_self"], 2 / 8.0);
  EXPECT_EQ(json["b_intra"], 3 / 8.0);
  EXPECT_EQ(json["b_inter"], 8 / 8.0);
  EXPECT_EQ(json["c"], 12 / 8.0);
  EXPECT_EQ(json["d"], 11 / 8.0);
  EXPECT_EQ(json["e"], 7 / 8.0);
  EXPECT_TRUE(copies_json(std::nullopt).is_null());
}

// Rows of 16 values and top_k 2: fp8 is 16 + 4 bytes, nvfp4 8 + 1; 8 bytes for each (id, weight).
TEST(BytesJson, what_the_routing_would_cost_in_other_dtypes) {
  const auto copies = copies_per_token(cyclic_traffic(), 8);
  const Json json = per_token_by_dtype_json(sample_point(4, 8), copies);
  EXPECT_EQ(json["bf16"]["copy"]["payload_bytes"], 32);
  EXPECT_EQ(json["fp8"]["copy"]["scale_bytes"], 4);
  EXPECT_EQ(json["fp8"]["a"]["payload_bytes"], 2 * 16.0);
  EXPECT_EQ(json["fp8"]["a"]["scale_bytes"], 2 * 4.0);
  EXPECT_EQ(json["fp8"]["a"]["metadata_bytes"], 2 * 8.0);
  EXPECT_EQ(json["fp8"]["b"]["metadata_bytes"], 13 / 8.0 * 16);
  EXPECT_EQ(json["nvfp4"]["e"]["payload_bytes"], 7 / 8.0 * 8);
  EXPECT_EQ(json["nvfp4"]["e"]["scale_bytes"], 7 / 8.0 * 1);
  EXPECT_EQ(json["fp32"]["d"]["payload_bytes"], 11 / 8.0 * 64);
  EXPECT_TRUE(per_token_by_dtype_json(sample_point(4, 0), std::nullopt).is_null());
  Traffic placeless = cyclic_traffic();
  placeless.domains.reset();
  const Json without = per_token_by_dtype_json(sample_point(4, 8), copies_per_token(placeless, 8));
  EXPECT_TRUE(without["bf16"]["c"].is_null());
  EXPECT_TRUE(without["bf16"]["e"].is_null());
}

}  // namespace
}  // namespace epsweep
