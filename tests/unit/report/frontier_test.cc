#include "report/frontier.h"

#include <cmath>

#include <gmock/gmock.h>

#include "report/frontier_records.h"
#include "report/point_record.h"
#include "report/record_limits.h"
#include "report/series_end.h"
#include "report/tables.h"
#include "sample_point.h"

namespace epsweep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// TPOT = (10 + C) ms on two ranks: 250 and 375 tokens/s/rank at 50 and 25 tokens/s/user.
RepeatCurve narrow_repeat(double slower = 1) {
  return {.loads = {{10, 0.020 * slower}, {30, 0.040 * slower}}, .admitted = 30, .stopped_by = ""};
}
// TPOT = (20 + C / 4) ms on four ranks: 333.3 and 500 at 33.3 and 25.
RepeatCurve wide_repeat(double slower = 1) {
  return {.loads = {{40, 0.030 * slower}, {80, 0.040 * slower}}, .admitted = 80, .stopped_by = ""};
}
FrontierCurve narrow() {
  return {.ep_size = 2, .repeats = {narrow_repeat()}};
}
FrontierCurve wide() {
  return {.ep_size = 4, .repeats = {wide_repeat()}};
}

// 40 tokens/s/user leave 25 ms, so C = 15: 15 / 2 / 0.025.
TEST(Frontier, LinearBetweenLoadsIsExactWhereTpotIs) {
  EXPECT_NEAR(*rank_rate_at(narrow_repeat(), 2, 40), 300, 1e-9);
  EXPECT_NEAR(*rank_rate_at(narrow_repeat(), 2, 50), 250, 1e-9);
  EXPECT_NEAR(*rank_rate_at(narrow_repeat(), 2, 25), 375, 1e-9);
  EXPECT_FALSE(rank_rate_at(narrow_repeat(), 2, 51).has_value());
  EXPECT_FALSE(rank_rate_at(narrow_repeat(), 2, 24).has_value());
  EXPECT_FALSE(rank_rate_at({}, 2, 40).has_value());
  EXPECT_FALSE(user_range({}).has_value());
}

// 25 ms lie between 10 and 20 tokens (350) and again between 20 and 30 (500 at both).
TEST(Frontier, OfSeveralLoadsTheMostCounts) {
  const RepeatCurve bent{
      .loads = {{10, 0.040}, {20, 0.020}, {30, 0.030}}, .admitted = {}, .stopped_by = ""};
  EXPECT_NEAR(*rank_rate_at(bent, 2, 40), 500, 1e-9);
}

TEST(Frontier, AGainIsOfWhatBothHaveMeasured) {
  const FrontierGain at_25 = gain_at(narrow(), wide(), 25);
  EXPECT_EQ(at_25.why_not, "");
  EXPECT_NEAR(at_25.ratio, 500.0 / 375, 1e-9);
  EXPECT_EQ(at_25.shown, Shown::too_few);
  const FrontierGain at_40 = gain_at(narrow(), wide(), 40);
  EXPECT_EQ(at_40.why_not, "EP4 was measured from 25.0 to 33.3 tokens/s/user");
  EXPECT_THAT(gain_at(narrow(), wide(), 10).why_not,
              AllOf(HasSubstr("EP2 was measured from 25.0 to 50.0"), HasSubstr("EP4 was")));
}

// At 33.3 tokens/s/user C = 20 on two ranks: 333.3 as on four.
TEST(Frontier, MemoryIsWhySlowerTokensWereNotMeasured) {
  FrontierCurve full = wide();
  full.repeats[0].stopped_by = "kv_memory";
  EXPECT_EQ(gain_at(narrow(), full, 24.99).why_not,
            "EP2 was measured from 25.0 to 50.0 tokens/s/user; EP4 was measured from 25.0 to 33.3 "
            "tokens/s/user, beyond which kv_memory stops it");
  EXPECT_EQ(gain_at(narrow(), full, 40).why_not,
            "EP4 was measured from 25.0 to 33.3 tokens/s/user");
  full.repeats.push_back(wide_repeat());
  EXPECT_THAT(gain_at(narrow(), full, 20).why_not, Not(HasSubstr("kv_memory")));
}

TEST(Frontier, GainsAreAtTheObjectiveAndAtTheEndsInCommon) {
  const auto gains = gains_between(narrow(), wide(), 40);
  ASSERT_EQ(gains.size(), 3U);
  EXPECT_FALSE(gains[0].why_not.empty());
  EXPECT_NEAR(gains[1].ratio, 500.0 / 375, 1e-9);
  EXPECT_NEAR(gains[2].user_rate, 1 / 0.030, 1e-9);
  EXPECT_NEAR(gains[2].ratio, 1, 1e-9);
  EXPECT_EQ(gains_between(narrow(), wide(), 25).size(), 2U);
  FrontierCurve fast = wide();
  for (LoadTpot& load : fast.repeats[0].loads) load.tpot_s /= 10;
  const auto none = gains_between(narrow(), fast, std::nullopt);
  ASSERT_EQ(none.size(), 1U);
  EXPECT_EQ(none[0].why_not, "EP4 was measured from 250.0 to 333.3 tokens/s/user");
  FrontierCurve empty{.ep_size = 8, .repeats = {RepeatCurve{}}};
  EXPECT_EQ(gains_between(narrow(), empty, std::nullopt).at(0).why_not,
            "EP8 has no range that all its repeats measured");
}

// At 30 tokens/s/user, 33.3 ms: two ranks give 350 down to (33.33 / 1.03 - 10) / 2 * 30 = 335.4,
// four 400 down to 4 * (33.33 / 1.03 - 20) / 4 * 30 = 370.9.
TEST(Frontier, RepeatsShowADifferenceOrDoNot) {
  FrontierCurve a{.ep_size = 2, .repeats = {}}, b{.ep_size = 4, .repeats = {}};
  for (const double slower : {1.0, 1.01, 1.02}) {
    a.repeats.push_back(narrow_repeat(slower));
    b.repeats.push_back(wide_repeat(slower));
  }
  EXPECT_EQ(gain_at(a, b, 30).shown, Shown::too_few);
  a.repeats.push_back(narrow_repeat(1.03));
  b.repeats.push_back(wide_repeat(1.03));
  const FrontierGain gain = gain_at(a, b, 30);
  EXPECT_EQ(gain.shown, Shown::faster);
  EXPECT_EQ(gain_at(b, a, 30).shown, Shown::slower);
  EXPECT_NEAR(gain.a.interval.low, 335.437, 1e-3);
  EXPECT_NEAR(gain.b.interval.low, 370.874, 1e-3);
  EXPECT_NEAR(gain.interval.low, 370.874 / 350, 1e-5);
  EXPECT_NEAR(gain.interval.high, 400 / 335.437, 1e-5);
  EXPECT_EQ(gain_at(a, a, 30).shown, Shown::nothing);
  // One repeat that stopped short is enough for no comparison there.
  b.repeats[2].loads.pop_back();
  EXPECT_FALSE(gain_at(a, b, 30).why_not.empty());
}

TEST(Frontier, LoadsAreMediansOfTheRepeatsThatMeasuredThem) {
  FrontierCurve curve{.ep_size = 2, .repeats = {narrow_repeat(), narrow_repeat(2)}};
  curve.repeats[1].loads.push_back({50, 0.1});
  const auto loads = loads_of(curve);
  ASSERT_EQ(loads.size(), 3U);
  EXPECT_EQ(loads[0].num_repeats, 2);
  EXPECT_DOUBLE_EQ(loads[0].tpot_s.median, 0.020);
  EXPECT_DOUBLE_EQ(loads[0].tpot_s.interval.high, 0.040);
  EXPECT_DOUBLE_EQ(loads[0].user_rate.interval.low, 25);
  EXPECT_DOUBLE_EQ(loads[0].rank_rate.interval.low, 125);
  EXPECT_DOUBLE_EQ(loads[0].rank_rate.median, 250);
  EXPECT_EQ(loads[2].num_repeats, 1);
}

// 10 layers of 7 stages and 30 us beside: 1 ms for stages of 10 us.
SweepPoint limited_point(int ep_size, std::int64_t tokens, int repeat = 0,
                         ConcurrencyMode mode = ConcurrencyMode::fixed_global) {
  SweepPoint point = sample_point(ep_size, tokens, mode);
  point.repeat = repeat;
  point.limits =
      Limits{.tpot_ms = 1.5, .tokens_per_s_per_user = {}, .other_layer_us = 30, .layers = 10};
  return point;
}
Json record_of(const SweepPoint& point, double stage_us) {
  return make_point_record(measured_input(point, stage_us * 1e-6));
}
Json slow_record(SweepPoint point, double stage_us, int attempt) {
  point.attempt = attempt;
  PointRecordInput input = measured_input(point, stage_us * 1e-6);
  if (attempt > 1) {
    input.ladder_stop = LadderStop{.kind = StopKind::latency_objective,
                                   .at_tokens = point.tokens_global(),
                                   .reason = "too slow"};
  }
  return make_point_record(input);
}
std::vector<TableRow> rows_of(const std::vector<Json>& records) {
  std::vector<TableRow> rows;
  for (const Json& record : records) rows.push_back({&record, "results/a"});
  return rows;
}

TEST(FrontierRecords, MetricsAreOfTheWholeModel) {
  const Json metrics = record_of(limited_point(2, 8), 10)["metrics"];
  EXPECT_NEAR(metrics["tpot_ms"].get<double>(), 1.0, 1e-9);
  EXPECT_NEAR(metrics["tokens_per_s_per_user"].get<double>(), 1000, 1e-6);
  EXPECT_NEAR(metrics["model_tokens_per_s_per_rank"].get<double>(), 4000, 1e-6);
  EXPECT_TRUE(record_of(sample_point(2, 8), 10)["metrics"]["tpot_ms"].is_null());
}

TEST(FrontierRecords, ASeriesEndsAtItsLowestStop) {
  const std::vector<Json> records = {
      record_of(limited_point(2, 8), 10),       slow_record(limited_point(2, 32), 40, 1),
      slow_record(limited_point(2, 32), 40, 2), record_of(limited_point(2, 16), 15),
      slow_record(limited_point(2, 24), 30, 1), slow_record(limited_point(2, 24), 30, 2)};
  const SeriesEnd end = series_end(rows_of(records));
  EXPECT_EQ(end.admitted, 16);
  EXPECT_EQ(end.refused, 24);
  EXPECT_EQ(end.stopped_by, "latency_objective");
  EXPECT_EQ(end.reason, "too slow");
  EXPECT_EQ(end.last_run, 32);
  const SeriesEnd backwards = series_end(rows_of({records.rbegin(), records.rend()}));
  EXPECT_EQ(backwards.refused, 24);
  EXPECT_EQ(backwards.admitted, 16);
}

// Just at the objective, and one rounding beside it, records say what the ladder went by.
TEST(FrontierRecords, RecordsAgreeWithTheLadder) {
  int num_equal = 0;
  for (int stage_us = 1; stage_us <= 60; ++stage_us) {
    Json record = record_of(limited_point(2, 8), stage_us);
    const double layer_us = record["layer"]["slowest_us"]["p50"].get<double>();
    SweepPoint point = limited_point(2, 8);
    const double token_s = tpot_s(*point.limits, layer_us * 1e-6);
    const double ms = token_s * 1e3;
    for (const double objective_ms : {std::nextafter(ms, 0), ms, std::nextafter(ms, 1e9)}) {
      point.limits->tpot_ms = objective_ms;
      record["point"]["limits"]["tpot_ms"] = objective_ms;
      num_equal += *point.limits->objective_s() == token_s ? 1 : 0;
      EXPECT_EQ(is_within_objective(record), !latency_stop(point, layer_us)) << stage_us;
    }
  }
  EXPECT_GT(num_equal, 0);
}

TEST(FrontierRecords, OneSlowSampleIsAdmittedByItsSecond) {
  const std::vector<Json> records = {record_of(limited_point(2, 8), 10),
                                     slow_record(limited_point(2, 16), 30, 1)};
  const SeriesEnd slow = series_end(rows_of(records));
  EXPECT_EQ(slow.admitted, 8);  // so far
  EXPECT_EQ(slow.stopped_by, "");
  SweepPoint again = limited_point(2, 16);
  again.attempt = 2;
  const std::vector<Json> both = {records[0], records[1], record_of(again, 15)};
  const SeriesEnd end = series_end(rows_of(both));
  EXPECT_EQ(end.admitted, 16);
  EXPECT_EQ(end.stopped_by, "ladder_end");
  const auto frontier = frontiers_of(rows_of(both)).at(0);
  ASSERT_EQ(frontier.curves[0].repeats.size(), 1U);
  EXPECT_NEAR(frontier.curves[0].repeats[0].loads[1].tpot_s, 1.35e-3, 1e-12);
}

TEST(FrontierRecords, WhatWentWrongEndsNoLadder) {
  PointRecordInput failed = skipped_input(limited_point(2, 16), "broken");
  failed.state = PointState::failed;
  const std::vector<Json> records = {record_of(limited_point(2, 8), 10), make_point_record(failed)};
  const SeriesEnd end = series_end(rows_of(records));
  EXPECT_EQ(end.admitted, 8);
  EXPECT_EQ(end.stopped_by, "");
}

// Rule: a fixed_global point and a fixed_per_rank point are never on one curve.
TEST(FrontierRecords, ModesAndVariantsHaveFrontiersOfTheirOwn) {
  SweepPoint other = limited_point(2, 8);
  other.transport = "alltoallv";
  const std::vector<Json> records = {
      record_of(limited_point(4, 8), 10),
      record_of(limited_point(2, 8), 10),
      record_of(limited_point(2, 4, 0, ConcurrencyMode::fixed_per_rank), 10),
      record_of(other, 10),
      record_of(limited_point(2, 8, 1), 12),
      record_of(sample_point(2, 8), 10)};
  const auto frontiers = frontiers_of(rows_of(records));
  ASSERT_EQ(frontiers.size(), 3U);
  ASSERT_EQ(frontiers[0].curves.size(), 2U);
  EXPECT_EQ(frontiers[0].curves[0].ep_size, 2);
  EXPECT_EQ(frontiers[0].curves[0].repeats.size(), 2U);
  EXPECT_EQ(frontiers[1].curves.size(), 1U);
  EXPECT_EQ(frontiers[1].curves[0].repeats[0].loads[0].tokens_global, 8);
}

// EP2: 4000 tokens/s/rank at 1000 a user, EP4: 2000 at 1000.
TEST(FrontierRecords, TheReportShowsCurvesStopsAndGains) {
  const std::vector<Json> records = {
      record_of(limited_point(2, 8), 10), slow_record(limited_point(2, 16), 20, 1),
      slow_record(limited_point(2, 16), 20, 2), record_of(limited_point(4, 8), 10)};
  const RunData run{.dir = "results/a", .run = Json::object(), .points = records};
  const std::string text = report_text({run});
  EXPECT_THAT(text, HasSubstr("\nFrontier\n(TPOT = 10 layers x (layer p50 + 30 us); objective 1.50 "
                              "ms, 666.7 tok/s/user;"));
  EXPECT_THAT(text, HasSubstr("EP2: 8 tokens admitted, 1000 tok/s/user and 4000 tok/s/rank there; "
                              "latency_objective\n"));
  EXPECT_THAT(
      text,
      HasSubstr("EP4: 8 tokens admitted, 1000 tok/s/user and 2000 tok/s/rank there; ladder_end\n"));
  EXPECT_THAT(text, HasSubstr("EP4 against EP2 at 666.7 tok/s/user: not compared: EP4 was measured "
                              "from 1000 to 1000 tokens/s/user\n"));
  EXPECT_THAT(text, HasSubstr("EP4 against EP2 at 1000 tok/s/user: 0.50x the tok/s/rank"));
  EXPECT_THAT(text, HasSubstr("stopped at 16 tokens by latency_objective: too slow; 8 tokens "
                              "admitted\n"));
  const Json json = frontiers_json({run});
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["concurrency"], "fixed_global");
  EXPECT_EQ(json[0]["curves"][0]["repeats"],
            Json::parse(R"([{"admitted_tokens_global": 8, "stopped_by": "latency_objective"}])"));
  EXPECT_EQ(json[0]["curves"][0]["loads"].size(), 2U);
  EXPECT_TRUE(json[0]["gains"][0]["ratio"].is_null());
  EXPECT_NEAR(json[0]["gains"][1]["ratio"]["median"].get<double>(), 0.5, 1e-9);
  EXPECT_EQ(json[0]["gains"][1]["shown"], "too_few");
  EXPECT_THAT(
      report_text(
          {{.dir = "a", .run = Json::object(), .points = {record_of(sample_point(2, 8), 10)}}}),
      Not(HasSubstr("Frontier")));
}

// A second attempt follows its first at once: it is no repeat.
TEST(FrontierRecords, AttemptsAreNotRepeats) {
  const std::vector<Json> records = {
      slow_record(limited_point(2, 16), 20, 1), slow_record(limited_point(2, 16), 20, 2),
      slow_record(limited_point(4, 16), 20, 1), slow_record(limited_point(4, 16), 20, 2)};
  EXPECT_THAT(report_text({{.dir = "a", .run = Json::object(), .points = records}}),
              Not(HasSubstr("Repeats (")));
}

TEST(FrontierRecords, JsonOfAReportHasItsParts) {
  const Json record = record_of(limited_point(2, 8), 10);
  const Json json = parse_json(report_json({record, record}, {{"frontier", {1, 2}}}), "json");
  EXPECT_EQ(json["points"], Json::array({record, record}));
  EXPECT_EQ(json["frontier"], Json::array({1, 2}));
  EXPECT_EQ(parse_json(report_json({}, Json::object()), "json")["points"], Json::array());
}

}  // namespace
}  // namespace epsweep::testing
