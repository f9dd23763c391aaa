// What is computed from another tool's measurements, in numbers worked out by hand.
#include "report/replay_record.h"

#include <gmock/gmock.h>

#include "replay_sample.h"

namespace epsweep {
namespace {

using ::testing::AllOf;
using testing::durations;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::replay_point;
using testing::replay_rank;
using testing::replay_record;
using testing::spans;

constexpr double kTinyUs = 1e-6;

Json clock(double offset_s, double bound_s) {
  return {{"offset_s", offset_s}, {"bound_s", bound_s}};
}

// Case C26: 4 ranks send 1 GB each, two after the other two: 4 GB in 20 ms.
Json turns() {
  std::vector<Json> ranks;
  for (int r = 0; r < 4; ++r) {
    const double begin_s = r < 2 ? 0 : 0.010;
    ranks.push_back(replay_rank(r, "dispatch", spans({begin_s}, {begin_s + 0.010})));
    ranks.back()["bytes"] = {{"dispatch", {{"bytes", 1'000'000'000}, {"letter", "A"}}}};
  }
  return replay_point("turns", ranks);
}

TEST(ReplayRecord, CaseC26RanksThatTakeTurnsDoNotAddUpTheirRates) {
  const Json dispatch = replay_record(turns())["stages"]["dispatch"];
  EXPECT_NEAR(dispatch["aggregate_gb_per_s"].get<double>(), 200, 1e-9);
  EXPECT_NEAR(dispatch["window_p50_us"].get<double>(), 20'000, kTinyUs);
  EXPECT_EQ(dispatch["bytes"], 4'000'000'000);
  EXPECT_EQ(dispatch["letter"], "A");
  EXPECT_NEAR(dispatch["slowest_us"]["p50"].get<double>(), 10'000, kTinyUs);
}

// Rank 1 comes 5 ms late and both leave 32 us after it: rank 0's 5032 us are waiting but for 32.
TEST(ReplayRecord, WaitingIsToldFromMoving) {
  const Json record =
      replay_record(replay_point("late", {replay_rank(0, "combine", spans({0}, {5.032e-3})),
                                          replay_rank(1, "combine", spans({5e-3}, {5.032e-3}))}));
  const Json& combine = record["stages"]["combine"];
  EXPECT_EQ(record["state"], "measured");
  EXPECT_NEAR(combine["slowest_us"]["p50"].get<double>(), 5032, kTinyUs);
  EXPECT_NEAR(combine["exchange"]["transfer_us"]["p50"].get<double>(), 32, kTinyUs);
  EXPECT_NEAR(combine["exchange"]["skew_in_us"]["p50"].get<double>(), 5000, kTinyUs);
  EXPECT_NEAR(combine["exchange"]["wait_p50_us_of_rank"][0].get<double>(), 5000, kTinyUs);
  EXPECT_EQ(combine["exchange"]["wait_p50_us_of_rank"][1], 0);
  EXPECT_EQ(combine["exchange"]["last_in_rank"], 1);
  EXPECT_EQ(combine["regime"], "aligned");
  EXPECT_FALSE(combine.contains("slowest_rank_cpu_p50_us"));
}

// The same as before, seen by clocks that differ: rank 1's is 4 ms ahead at 100 s of its own and
// loses 50 us every second.
TEST(ReplayRecord, ClocksArePutOnOneAxis) {
  Json late = replay_rank(1, "combine", spans({102.005 + 0.0039}, {102.005032 + 0.0039}));
  late["clock"] = {{"offset_s", -0.004}, {"drift_ppm", 50}, {"at_s", 100}, {"bound_s", 3e-6}};
  Json first = replay_rank(0, "combine", spans({102}, {102.005032}));
  first["clock"] = clock(0, 2e-6);
  const Json record = replay_record(replay_point("late", {first, late}));
  const Json& exchange = record["stages"]["combine"]["exchange"];
  EXPECT_NEAR(exchange["skew_in_us"]["p50"].get<double>(), 5000, 0.5);  // 50 ppm of 10 ms
  EXPECT_NEAR(exchange["transfer_us"]["p50"].get<double>(), 32, 0.5);
  EXPECT_EQ(exchange["last_in_rank"], 1);
  EXPECT_NEAR(record["all_stages"]["order_bound_us"].get<double>(), 5, 1e-9);
}

TEST(ReplayRecord, ClocksThatCannotOrderSaySo) {
  // 4 us apart, read within 3 us each.
  const auto record_of = [](double transfer_s) {
    std::vector<Json> ranks = {replay_rank(0, "dispatch", spans({0}, {4e-6 + transfer_s})),
                               replay_rank(1, "dispatch", spans({4e-6}, {4e-6 + transfer_s}))};
    for (Json& rank : ranks) rank["clock"] = clock(0, 3e-6);
    return replay_record(replay_point("p", ranks));
  };
  Json record = record_of(50e-6);
  Json exchange = record["stages"]["dispatch"]["exchange"];
  for (const char* key : {"skew_in_us", "wait_p50_us_of_rank", "last_in_rank", "last_in_share"}) {
    EXPECT_TRUE(exchange[key].is_null()) << key;
  }
  EXPECT_NEAR(exchange["transfer_us"]["p50"].get<double>(), 50, kTinyUs);
  EXPECT_EQ(record["null_reasons"]["stages.dispatch.exchange.wait_p50_us_of_rank"],
            "clocks cannot order: a median skew of 4.000 us is within their bound of 6.000 us");
  record = record_of(5e-6);
  exchange = record["stages"]["dispatch"]["exchange"];
  EXPECT_TRUE(exchange["transfer_us"].is_null());
  EXPECT_THAT(record["null_reasons"]["stages.dispatch.exchange.transfer_us"].get<std::string>(),
              HasSubstr("a median transfer of 5.000 us"));
}

TEST(ReplayRecord, NullHasAReason) {
  const std::string exchange = "stages.dispatch.exchange";
  const std::string rate = "stages.dispatch.aggregate_gb_per_s";
  Json point = replay_point("p", {replay_rank(0, "dispatch", durations({1e-6})),
                                  replay_rank(1, "dispatch", durations({2e-6}))});
  Json record = replay_record(point);
  EXPECT_TRUE(record["stages"]["dispatch"]["exchange"].is_null());
  EXPECT_THAT(record["null_reasons"][exchange].get<std::string>(), HasSubstr("durations only"));
  EXPECT_EQ(record["null_reasons"][rate], "no bytes");
  EXPECT_NEAR(record["stages"]["dispatch"]["slowest_us"]["p50"].get<double>(), 2, kTinyUs);

  // Each rank's clock began at another moment.
  Json other = turns();
  other["ranks"][3].erase("clock");
  record = replay_record(other);
  EXPECT_TRUE(record["stages"]["dispatch"]["exchange"].is_null());
  EXPECT_EQ(record["null_reasons"][exchange], "no common clock: rank 3 has none");
  EXPECT_TRUE(record["stages"]["dispatch"]["aggregate_gb_per_s"].is_null());
  EXPECT_EQ(record["null_reasons"][rate], "no common clock: rank 3 has none");
  EXPECT_NEAR(record["stages"]["dispatch"]["slowest_us"]["p50"].get<double>(), 10'000, kTinyUs);
}

TEST(ReplayRecord, AWindowOfNoLengthHasNoRate) {
  Json point = turns();
  for (Json& rank : point["ranks"]) rank["stages"]["dispatch"] = spans({1}, {1});
  Json record = replay_record(point);
  EXPECT_TRUE(record["stages"]["dispatch"]["aggregate_gb_per_s"].is_null());
  EXPECT_THAT(record["null_reasons"]["stages.dispatch.aggregate_gb_per_s"].get<std::string>(),
              HasSubstr("zero-length window"));
  EXPECT_EQ(record["stages"]["dispatch"]["slowest_us"]["p50"], 0);
  // 20 ms that clocks may have wrong by 20 ms.
  point = turns();
  for (Json& rank : point["ranks"]) rank["clock"] = clock(0, 0.010);
  record = replay_record(point);
  EXPECT_TRUE(record["stages"]["dispatch"]["aggregate_gb_per_s"].is_null());
  EXPECT_THAT(record["null_reasons"]["stages.dispatch.aggregate_gb_per_s"].get<std::string>(),
              HasSubstr("within the clocks' bound"));
}

Json one_rank(std::vector<double> seconds) {
  return replay_point("p", {replay_rank(0, "exchange", durations(std::move(seconds)))});
}

TEST(ReplayRecord, PercentilesNeedEnoughIterations) {
  const auto slowest = [](std::size_t iterations) {
    return replay_record(one_rank(std::vector<double>(iterations, 1e-6)));
  };
  Json record = slowest(5);
  for (const char* key : {"p50_low", "p90", "p95", "p99"}) {
    EXPECT_TRUE(record["all_stages"]["slowest_us"][key].is_null()) << key;
    EXPECT_TRUE(record["null_reasons"].contains(key)) << key;
  }
  EXPECT_EQ(record["null_reasons"]["p99"], "needs 100 iterations, there are 5");
  record = slowest(20);
  EXPECT_FALSE(record["all_stages"]["slowest_us"]["p95"].is_null());
  EXPECT_TRUE(record["all_stages"]["slowest_us"]["p99"].is_null());
  EXPECT_FALSE(record["null_reasons"].contains("p95"));
}

// Case C34: a first call that set connections up. Nothing is dropped; sorted the eight values are
// 3 4 4 4 5 5 14 214477.
TEST(ReplayRecord, CaseC34AFirstSampleSpikeIsFlagged) {
  Json point = one_rank({214477e-6, 14e-6, 5e-6, 3e-6, 4e-6, 5e-6, 4e-6, 4e-6});
  point["warmup"] = 0;
  const Json record = replay_record(point);
  const Json& all = record["all_stages"];
  EXPECT_NEAR(all["slowest_us"]["p50"].get<double>(), 4, kTinyUs);
  EXPECT_EQ(all["slowest_us"]["num_samples"], 8);
  EXPECT_NEAR(all["slowest_us"]["max"].get<double>(), 214477, 1e-3);
  EXPECT_EQ(all["pass"]["first_sample_is_spike"], true);
  EXPECT_NEAR(all["first_sample_us"].get<double>(), 214477, 1e-3);
  ASSERT_EQ(record["warnings"].size(), 1U);
  EXPECT_THAT(record["warnings"][0].get<std::string>(),
              AllOf(HasSubstr("first timed iteration"), HasSubstr("warmup 0")));
  const Json quiet = replay_record(one_rank({5e-6, 14e-6, 5e-6, 3e-6}));
  EXPECT_EQ(quiet["all_stages"]["pass"]["first_sample_is_spike"], false);
  EXPECT_TRUE(quiet["warnings"].empty());
}

// A log of four ranks on two hosts.
Json labelled(const std::string& within, const std::string& between) {
  Json point = turns();
  point["expected_transport"] = "ib";
  point["transports"] = Json::array();
  for (std::size_t from = 0; from < 4; ++from) {
    point["ranks"][from]["host"] = from < 2 ? "n1" : "n2";
    for (std::size_t to = 0; to < 4; ++to) {
      if (to == from) continue;
      point["transports"].push_back(
          {{"from", from}, {"to", to}, {"transport", from / 2 == to / 2 ? within : between}});
    }
  }
  return point;
}

// Case C36: peer access was turned off, so same-host ranks fell back to shared memory; or hosts
// talked through sockets.
TEST(ReplayRecord, CaseC36AnotherTransportThanTheLabelsFails) {
  Json record = replay_record(labelled("SHM/direct/direct", "NET/IB/0/GDRDMA"));
  EXPECT_EQ(record["state"], "failed");
  EXPECT_EQ(record["reason"],
            "transport: ranks 0 and 1, both on n1: labelled ib, the log shows shm; 3 more pairs");
  EXPECT_TRUE(record["stages"].is_null());
  EXPECT_TRUE(record["all_stages"].is_null());
  record = replay_record(labelled("NET/IB/0", "NET/Socket/0"));
  EXPECT_EQ(record["state"], "failed");
  EXPECT_THAT(record["reason"].get<std::string>(),
              HasSubstr("ranks 0 and 2, n1 and n2: labelled ib, the log shows socket"));
  record = replay_record(labelled("ib", "ib"));
  EXPECT_EQ(record["state"], "measured");
  EXPECT_EQ(record["transport_check"]["verdict"], "passed");
  Json apart = labelled("shm", "ib");
  apart["expected_transport"] = {{"within_host", "shm"}, {"between_hosts", "ib"}};
  EXPECT_EQ(replay_record(apart)["transport_check"]["verdict"], "passed");
}

TEST(ReplayRecord, ALabelThatTheLogDoesNotShowIsUnproven) {
  Json point = labelled("ib", "ib");
  point["transports"].erase(0);
  Json record = replay_record(point);
  EXPECT_EQ(record["state"], "measured");
  EXPECT_EQ(record["transport_check"]["verdict"], "unproven");
  EXPECT_EQ(record["transport_check"]["pairs_unlisted"], 1);
  EXPECT_EQ(record["transport_check"]["pairs"], 12);
  EXPECT_THAT(record["warnings"][0].get<std::string>(), HasSubstr("not proven"));
  // Device to device, and nobody says over what.
  point = labelled("P2P/CUMEM", "P2P/CUMEM");
  point["expected_transport"] = "nvlink";
  record = replay_record(point);
  EXPECT_EQ(record["transport_check"]["verdict"], "unproven");
  EXPECT_EQ(record["transport_check"]["pairs_undecided"], 12);
}

TEST(ReplayRecord, AFailedCheckHasNoTimes) {
  Json point = turns();
  point["check"] = "failed";
  const Json record = replay_record(point);
  EXPECT_EQ(record["state"], "failed");
  EXPECT_TRUE(record["stages"].is_null());
  EXPECT_EQ(record["reason"], "the tool's own check of the results failed");
}

// Two stages of 2 and 3 us; a whole layer of 4 us beside them is not a part of their sum.
TEST(ReplayRecord, StagesAddUpAndALayerStandsApart) {
  std::vector<Json> ranks;
  for (int r = 0; r < 2; ++r) {
    ranks.push_back(replay_rank(r, "dispatch", spans({r * 1e-6}, {2e-6 + r * 1e-6})));
    ranks.back()["stages"]["expert_ffn"] = durations({3e-6});
    ranks.back()["stages"]["layer"] = durations({4e-6});
  }
  Json point = replay_point("p", ranks, "chained");
  point["ranks"][0]["rows"] = 30;
  point["ranks"][1]["rows"] = 10;
  point["rows_per_expert"] = {30, 10, 0, 0};
  const Json record = replay_record(point);
  EXPECT_NEAR(record["all_stages"]["slowest_us"]["p50"].get<double>(), 5, kTinyUs);
  EXPECT_NEAR(record["layer"]["slowest_us"]["p50"].get<double>(), 4, kTinyUs);
  EXPECT_EQ(record["layer"]["regime"], "chained");
  EXPECT_EQ(record["stages"].size(), 2U);
  EXPECT_EQ(record["rows_per_rank"]["max_over_mean"], 1.5);
  EXPECT_EQ(record["rows_per_expert"]["max_over_mean"], 3);
  // What is not an exchange needs no order.
  EXPECT_NEAR(record["stages"]["dispatch"]["exchange"]["skew_in_us"]["p50"].get<double>(), 1,
              kTinyUs);
  EXPECT_TRUE(record["stages"]["expert_ffn"]["exchange"].is_null());
  EXPECT_FALSE(record["null_reasons"].contains("stages.expert_ffn.exchange"));
}

TEST(ReplayRecord, GroupsWaitForTheirOwnRanksOnly) {
  std::vector<Json> ranks;
  for (int r = 0; r < 4; ++r) {
    const double begin_s = r * 1e-3;
    ranks.push_back(replay_rank(r, "dispatch", spans({begin_s}, {5e-3})));
    ranks.back()["group"] = r / 2;
  }
  Json point = replay_point("p", ranks);
  point["ep_size"] = 2;
  const Json record = replay_record(point);
  EXPECT_EQ(record["num_groups"], 2);
  const Json& exchange = record["stages"]["dispatch"]["exchange"];
  EXPECT_NEAR(exchange["skew_in_us"]["p50"].get<double>(), 1000, kTinyUs);
  EXPECT_NEAR(exchange["transfer_us"]["p50"].get<double>(), 4000, kTinyUs);
}

}  // namespace
}  // namespace epsweep
