#include "report/transport_check.h"

#include <gtest/gtest.h>

namespace epsweep {
namespace {

TEST(TransportCheck, UnderstandsWhatNcclLogs) {
  EXPECT_EQ(transport_of_text("P2P/CUMEM/read"), "p2p");
  EXPECT_EQ(transport_of_text("SHM/direct/direct"), "shm");
  EXPECT_EQ(transport_of_text("NET/IB/0/GDRDMA"), "ib");
  EXPECT_EQ(transport_of_text("NET/IBext_v8/0"), "ib");
  EXPECT_EQ(transport_of_text("NET/Socket/0"), "socket");
  EXPECT_EQ(transport_of_text("NVLink"), "nvlink");
  EXPECT_FALSE(transport_of_text("NET/").has_value());
  EXPECT_FALSE(transport_of_text("").has_value());
}

// Two groups of two: four pairs of ranks of one group. Ranks 0 and 2 are not in one.
TEST(TransportCheck, CountsPairsOfAGroup) {
  const std::vector<RankPlaceFacts> ranks = {{0, 0, "a"}, {1, 0, "b"}, {2, 1, "a"}, {3, 1, "b"}};
  const ExpectedTransport expected{.within_host = "shm", .between_hosts = "ib"};
  const TransportCheck check =
      check_transports(expected, {{0, 1, "ib"}, {1, 0, "ib"}, {2, 3, "ib"}, {0, 2, "shm"}}, ranks);
  EXPECT_EQ(check.problem, "");
  EXPECT_EQ(check.pairs, 4);
  EXPECT_EQ(check.pairs_unlisted, 1);
}

// A pair with several channels is wrong if one of them is.
TEST(TransportCheck, OneWrongChannelIsEnough) {
  const std::vector<RankPlaceFacts> ranks = {{0, 0, ""}, {1, 0, ""}};
  const TransportCheck check =
      check_transports({"ib", "ib"}, {{0, 1, "ib"}, {0, 1, "socket"}, {1, 0, "ib"}}, ranks);
  EXPECT_EQ(check.problem, "ranks 0 and 1: labelled ib, the log shows socket");
  EXPECT_EQ(check.pairs_wrong, 1);
}

}  // namespace
}  // namespace epsweep
