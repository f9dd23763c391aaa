#include "report/point_record.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "report/record_access.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using testing::even_summary;
using testing::even_times;
using testing::measured_input;
using testing::sample_layout;
using testing::sample_point;
using testing::skipped_input;

// What a reader of the file sees.
Json written_and_read(const PointRecordInput& input) {
  return parse_json(to_json_line(make_point_record(input)), "record");
}

TEST(PointRecord, MeasuredPointHoldsItsNumbers) {
  const Json record = written_and_read(measured_input(sample_point(4, 8)));
  EXPECT_EQ(record.begin().key(), "schema_version");
  EXPECT_EQ(record["state"], "measured");
  EXPECT_TRUE(record["reason"].is_null());
  EXPECT_EQ(record["id"], point_id(sample_point(4, 8)));
  EXPECT_EQ(record["point"]["ep_size"], 4);
  EXPECT_EQ(record["tokens_per_rank"], Json({2, 2, 2, 2}));
  EXPECT_EQ(record["routing_checksum"], "0000000000abcdef");
  EXPECT_EQ(record["placement_fitted_on"], nullptr);
  EXPECT_EQ(record["rows_per_expert"]["per_layer"][0].size(), 8u);
  EXPECT_EQ(record["rows_per_rank"]["per_layer"], Json::parse("[[4, 4, 4, 4]]"));
  EXPECT_EQ(record["rows_per_expert"]["max_over_mean"], 1.0);
  const Json& gate_up = record["m_distribution"]["gate_up"];
  EXPECT_EQ(gate_up["n"], 16);
  EXPECT_EQ(gate_up["k"], 16);
  EXPECT_EQ(gate_up["routed_rows"], 16);
  EXPECT_EQ(gate_up["computed_rows"], 20);
  EXPECT_EQ(gate_up["stored_rows"], 24);
  EXPECT_EQ(record["m_distribution"]["down"]["k"], 8);
  EXPECT_EQ(record["bytes"]["dispatch"]["row_bytes"], 32);
  EXPECT_EQ(record["bytes"]["dispatch"]["a_remote_bytes"], 8 * 32);
  EXPECT_EQ(record["bytes"]["combine"]["b_self_copies"], 6);
  EXPECT_NEAR(record["layer"]["slowest_us"]["p50"].get<double>(), 70, 1e-6);
  EXPECT_NEAR(record["stages"]["dispatch"]["slowest_us"]["p90"].get<double>(), 10, 1e-6);
  EXPECT_TRUE(record["stages"]["dispatch"]["slowest_us"]["p99"].is_null());
  EXPECT_NEAR(record["stages"]["dispatch"]["slowest_rank_cpu_p50_us"].get<double>(), 5, 1e-6);
  EXPECT_EQ(record["layer"]["regime"], "chained");
  EXPECT_EQ(record["stages"]["dispatch"]["regime"], "aligned");
  EXPECT_EQ(record["layer"]["p50_us_of_rank"].size(), 4u);
  EXPECT_EQ(record["layer"]["chain_layers"], 4);
  EXPECT_NEAR(record["all_stages"]["slowest_us"]["p50"].get<double>(), 70, 1e-6);
  EXPECT_NEAR(record["entry_skew_us"].get<double>(), 0, 1e-6);
  EXPECT_TRUE(record["stages"]["permute"]["exchange"].is_null());
  const Json& exchange = record["stages"]["dispatch"]["exchange"];
  EXPECT_NEAR(exchange["transfer_us"]["p50"].get<double>(), 10, 1e-6);
  EXPECT_EQ(exchange["skew_in_us"]["p50"], 0.0);
  EXPECT_TRUE(exchange["last_in_rank"].is_null());
  EXPECT_NEAR(record["metrics"]["layer_p50_us"].get<double>(), 70, 1e-6);
  EXPECT_EQ(record["check"]["verdict"], "passed");
  EXPECT_EQ(record["load"]["oversubscribed"], false);
}

TEST(PointRecord, ShowsHowWellClocksWereAligned) {
  PointRecordInput input = measured_input(sample_point(4, 8));
  EXPECT_TRUE(written_and_read(input)["clock"].is_null());
  input.harness.align = 0.0125;
  input.clock = ClockReport{.domains = 2,
                            .bound_s_of_rank = {0, 0, 4e-6, 2e-6},
                            .worst_drift_ppm = -12.5,
                            .worst_drift_bound_ppm = 0.25};
  const Json record = written_and_read(input);
  EXPECT_EQ(record["harness_s"]["align"], 0.0125);
  const Json& clock = record["clock"];
  EXPECT_EQ(clock["domains"], 2);
  EXPECT_EQ(clock["bound_us_of_rank"].size(), 4u);
  EXPECT_DOUBLE_EQ(clock["bound_us_of_rank"][3].get<double>(), 2);
  EXPECT_DOUBLE_EQ(clock["worst_bound_us"].get<double>(), 4);
  EXPECT_EQ(clock["worst_drift_ppm"], -12.5);
  EXPECT_EQ(clock["worst_drift_bound_ppm"], 0.25);
  EXPECT_TRUE(record_formulas()["clock"].is_string());
}

// 16 copies by letter A, 12 by B, of 32 bytes.
TEST(PointRecord, SaysWhichCopiesWereSent) {
  PointRecordInput input = measured_input(sample_point(4, 8));
  Json bytes = written_and_read(input)["bytes"];
  for (const char* direction : {"dispatch", "combine"}) {
    EXPECT_EQ(bytes[direction]["sent_copies"], 16);
    EXPECT_EQ(bytes[direction]["sent_bytes"], 16 * 32);
    EXPECT_EQ(bytes[direction]["metadata_bytes"], 0);
  }
  input.point.exchange_unit = ExchangeUnit::rank;
  input.workload->metadata_bytes = 160;
  bytes = written_and_read(input)["bytes"];
  for (const char* direction : {"dispatch", "combine"}) {
    EXPECT_EQ(bytes[direction]["sent_copies"], 12);
    EXPECT_EQ(bytes[direction]["sent_bytes"], 12 * 32);
    EXPECT_EQ(bytes[direction]["a_total_copies"], 16);
  }
  EXPECT_EQ(bytes["dispatch"]["metadata_bytes"], 160);
  EXPECT_EQ(bytes["combine"]["metadata_bytes"], 0);
}

// Four ranks, one layer, 16 copies of which 8 stay home: sections of 3 rows carry 4 * 4 * 3 rows, 4
// * 3 of them at home.
TEST(PointRecord, ShowsPaddingApart) {
  PointRecordInput input = measured_input(sample_point(4, 8));
  Json bytes = written_and_read(input)["bytes"];
  EXPECT_EQ(bytes["dispatch"]["padding_bytes"], 0);
  EXPECT_TRUE(bytes["capacity_rows"].is_null());
  EXPECT_EQ(bytes["row_counts"], "exchanged");
  input.workload->capacity_rows = 3;
  bytes = written_and_read(input)["bytes"];
  for (const char* direction : {"dispatch", "combine"}) {
    EXPECT_EQ(bytes[direction]["sent_bytes"], 16 * 32);
    EXPECT_EQ(bytes[direction]["padding_bytes"], (48 - 16) * 32);
    EXPECT_EQ(bytes[direction]["padding_self_bytes"], (12 - 8) * 32);
  }
  EXPECT_EQ(bytes["capacity_rows"], 3);
  EXPECT_EQ(bytes["row_counts"], "planned");
}

// Rows of the table are ranks in groups; the record names world ranks.
TEST(PointRecord, SlowestRankIsAWorldRank) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  input.world_size = 4;
  input.layout = sample_layout(4, 2);
  input.layout.group_of_rank = {-1, 0, -1, 0};
  input.layout.ep_rank_of_rank = {-1, 0, -1, 1};
  input.layout.idle_ranks = {0, 2};
  TimingTable table = even_times(2, 20, 10e-6);
  for (int i = 0; i < 20; ++i) {
    table.at(1, i, 0, Stage::dispatch, Measure::begin_s) += 1e-6;
    table.at(1, i, 0, Stage::unpermute, Measure::end_s) += 3e-6;
  }
  input.timings = even_summary(table, 70e-6);
  const Json record = written_and_read(input);
  EXPECT_EQ(record["all_stages"]["slowest_rank"], 3);
  EXPECT_EQ(record["all_stages"]["slowest_rank_share"], 1.0);
  const Json& exchange = record["stages"]["dispatch"]["exchange"];
  EXPECT_EQ(exchange["last_in_rank"], 3);
  EXPECT_EQ(exchange["last_in_share"], 1.0);
  EXPECT_NEAR(exchange["wait_p50_us_of_rank"][0].get<double>(), 1, 1e-6);
  EXPECT_NEAR(exchange["wait_p50_us_of_rank"][1].get<double>(), 0, 1e-6);
  EXPECT_EQ(record["idle_ranks"], Json({0, 2}));
  EXPECT_EQ(record["num_active_ranks"], 2);
}

TEST(PointRecord, UndefinedIsNullNeverNan) {
  PointRecordInput input = measured_input(sample_point(1, 8));
  input.check->worst_error = std::numeric_limits<double>::quiet_NaN();
  input.load.foreign_load = std::numeric_limits<double>::infinity();
  const std::string line = to_json_line(make_point_record(input));
  EXPECT_EQ(line.find("nan"), std::string::npos);
  EXPECT_EQ(line.find("inf"), std::string::npos);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Json record = parse_json(line, "record");
  EXPECT_TRUE(record["metrics"]["dispatch_a_remote_gb_per_s_per_rank"].is_null());
  EXPECT_TRUE(record["check"]["worst_error"].is_null());
  EXPECT_TRUE(record["load"]["foreign_load"].is_null());
}

TEST(PointRecord, OnlyPointsThatRanRightHaveTimes) {
  for (std::size_t s = 0; s < kPointStateNames.size(); ++s) {
    PointRecordInput input = measured_input(sample_point(4, 8));
    input.state = static_cast<PointState>(s);
    input.timings_file = "timings/0000.npy";
    input.chains_file = "timings/0000_chains.npy";
    if (input.state != PointState::measured) input.reason = "because";
    if (input.state == PointState::simulated || input.state == PointState::predicted) {
      input.check->verdict = CheckVerdict::not_run;
    }
    const Json record = written_and_read(input);
    EXPECT_EQ(record["state"], kPointStateNames[s]);
    for (const char* key : {"layer", "all_stages", "entry_skew_us", "stages", "metrics",
                            "ffn_p50_us_of_rank", "timings_file", "chains_file"}) {
      ASSERT_TRUE(record.contains(key)) << key;
      EXPECT_EQ(record[key].is_null(), !has_times(input.state)) << key;
    }
    EXPECT_FALSE(record["rows_per_expert"].is_null());  // known without running
  }
}

// A point on a virtual clock has nothing that could be checked, and may not look as if it had been.
TEST(PointRecord, SimulatedAndPredictedPointsPassNoCheck) {
  for (const PointState state : {PointState::simulated, PointState::predicted}) {
    PointRecordInput input = measured_input(sample_point(4, 8));
    input.state = state;
    EXPECT_THROW(make_point_record(input), RunError);
    input.check->verdict = CheckVerdict::not_run;
    EXPECT_EQ(written_and_read(input)["check"]["verdict"], "not_run");
    input.state = PointState::measured;
    EXPECT_THROW(make_point_record(input), RunError);
  }
}

// Rank 1 of two takes 30 us where rank 0 takes 10; its own ceilings count. 6,144 FLOPs on 3,072
// bytes of weights and 8 rows of 2 * 32 bytes: 3,584 bytes.
TEST(PointRecord, RooflineIsOfTheRankSlowestInItsExperts) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  EXPECT_TRUE(written_and_read(input)["ffn_roofline"].is_null());
  TimingTable times = even_times(2, 20, 10e-6);
  for (int i = 0; i < 20; ++i) times.at(1, i, 0, Stage::expert_ffn, Measure::end_s) += 20e-6;
  input.timings = testing::even_summary(times, 90e-6);
  input.ceilings =
      PointCeilings{.ranks = {{.flop_per_s = 9e9, .read_bytes_per_s = 9e9},
                              {.flop_per_s = 1.024e9, .read_bytes_per_s = 0.3584e9}},
                    .exchange = ExchangeLine{.alpha_s = 1e-6, .beta_bytes_per_s = 128e6}};
  const Json record = written_and_read(input);
  const Json& roofline = record["ffn_roofline"];
  EXPECT_EQ(roofline["flops"], 6144.0);
  EXPECT_EQ(roofline["bytes"], 3584.0);
  EXPECT_EQ(roofline["bound"], "memory");
  EXPECT_NEAR(roofline["attainable_flop_per_s"].get<double>(), 0.6144e9, 1);
  EXPECT_NEAR(roofline["achieved_flop_per_s"].get<double>(), 6144 / 30e-6, 1);
  EXPECT_NEAR(record["metrics"]["ffn_roofline_share"].get<double>(), 1.0 / 3, 1e-9);
  EXPECT_NEAR(record["metrics"]["ffn_peak_share"].get<double>(), 0.2, 1e-9);
  // 8 remote rows of 32 bytes, half from each rank: 1 us + 128 B / 128 MB/s = 2 us, twice, of the
  // 10 us that dispatch and combine take each.
  EXPECT_NEAR(record["metrics"]["exchange_ceiling_share"].get<double>(), 0.2, 1e-9);
}

TEST(PointRecord, CeilingsThatWereNotFoundLeaveNulls) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  input.ceilings = PointCeilings{.ranks = std::vector<RankCeilings>(2)};
  const Json record = written_and_read(input);
  EXPECT_TRUE(record["ffn_roofline"].is_null());
  EXPECT_TRUE(record["metrics"]["ffn_peak_share"].is_null());
  EXPECT_TRUE(record["metrics"]["exchange_ceiling_share"].is_null());
}

TEST(PointRecord, SkippedPointSaysWhy) {
  const Json record = written_and_read(skipped_input(sample_point(4, 8), "too big"));
  EXPECT_EQ(record["state"], "skipped");
  EXPECT_EQ(record["reason"], "too big");
  EXPECT_TRUE(record["rows_per_expert"].is_null());
  EXPECT_TRUE(record["check"].is_null());
}

// Case C52: zero tokens everywhere.
TEST(PointRecord, EmptyPointIsNotASuccess) {
  PointRecordInput input = measured_input(sample_point(4, 0));
  input.state = PointState::empty;
  input.workload = PointWorkload{};
  input.workload->rows_per_expert = {std::vector<std::int64_t>(8, 0)};
  input.workload->rows_per_rank = {std::vector<std::int64_t>(4, 0)};
  const Json record = written_and_read(input);
  EXPECT_EQ(record["state"], "empty");
  EXPECT_NE(find_text(record, "reason").find("zero tokens"), std::string::npos);
  EXPECT_TRUE(record["rows_per_expert"]["max_over_mean"].is_null());
  EXPECT_EQ(record["rows_per_expert"]["empty_fraction"], 1.0);
  EXPECT_TRUE(record["layer"].is_null());
}

TEST(PointRecord, ContradictionsAreRefused) {
  PointRecordInput unchecked = measured_input(sample_point(4, 8));
  unchecked.check->verdict = CheckVerdict::failed;
  EXPECT_THROW(make_point_record(unchecked), RunError);
  PointRecordInput untimed = measured_input(sample_point(4, 8));
  untimed.timings.reset();
  EXPECT_THROW(make_point_record(untimed), RunError);
  PointRecordInput wordless = skipped_input(sample_point(4, 8), "");
  EXPECT_THROW(make_point_record(wordless), RunError);
  PointRecordInput reasonless = measured_input(sample_point(4, 8));
  reasonless.state = PointState::impossible;
  EXPECT_THROW(make_point_record(reasonless), RunError);
  PointRecordInput few_ceilings = measured_input(sample_point(4, 8));
  few_ceilings.ceilings = PointCeilings{.ranks = std::vector<RankCeilings>(3)};
  EXPECT_THROW(make_point_record(few_ceilings), RunError);
  PointRecordInput narrow = measured_input(sample_point(4, 8));
  narrow.layout = sample_layout(8, 8);
  EXPECT_THROW(make_point_record(narrow), RunError);
}

// Case C34.
TEST(PointRecord, FirstSampleSpikeIsAWarning) {
  PointRecordInput input = measured_input(sample_point(4, 8));
  EXPECT_EQ(written_and_read(input)["warnings"].size(), 0u);
  TimingTable table = even_times(4, 8, 1e-6);
  table.at(2, 0, 0, Stage::unpermute, Measure::end_s) = 0.2;
  input.timings = even_summary(table, 7e-6);
  const Json record = written_and_read(input);
  ASSERT_EQ(record["warnings"].size(), 1u);
  EXPECT_NE(record["warnings"][0].get<std::string>().find("warm-up"), std::string::npos);
  EXPECT_NEAR(record["all_stages"]["slowest_us"]["p50"].get<double>(), 7, 1e-6);
  EXPECT_NEAR(record["all_stages"]["first_sample_us"].get<double>(), 200000, 1e-6);
}

TEST(PointRecord, OversubscriptionIsDerived) {
  PointRecordInput input = measured_input(sample_point(4, 8));
  input.load = {.ranks = 4, .cores = 2, .foreign_load = std::nullopt};
  EXPECT_EQ(written_and_read(input)["load"]["oversubscribed"], true);
}

TEST(PointRecord, FormulasNameEveryMetric) {
  const Json formulas = record_formulas();
  const Json record = make_point_record(measured_input(sample_point(4, 8)));
  for (const auto& [name, value] : record["metrics"].items()) {
    EXPECT_TRUE(formulas["metrics"].contains(name)) << name;
  }
  EXPECT_EQ(formulas["metrics"]["layer_p50_us"]["better"], "lower");
}

TEST(PointRecord, CarriesThePlacementScoreAndItsWarnings) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  EXPECT_EQ(make_point_record(input)["placement_score"], nullptr);
  PlacementScore score;
  score.judged_on = "own trace";
  score.before = rank_imbalance({{12, 4}, {0, 0}});
  score.judged = rank_imbalance({{8, 8}, {0, 0}});
  score.uniform_floor = 1.25;
  score.skew_wall = {4.0, std::nullopt};
  score.min_skew_wall = 4.0;
  score.moved_slots = {3, 0};
  score.total_moved_slots = 3;
  score.rebalance_needed = true;
  score.warnings = {"seen before"};
  input.workload->placement_score = score;
  input.warnings = {"another"};
  const Json record = make_point_record(input);
  const Json& json = record["placement_score"];
  EXPECT_EQ(json["before"]["per_layer"], Json::parse("[1.5, null]"));
  EXPECT_EQ(json["before"]["worst_layer"], 0);
  EXPECT_EQ(json["judged"]["mean_over_layers"], 1.0);
  EXPECT_EQ(json["fitted"], nullptr);
  EXPECT_EQ(json["uniform_floor"], 1.25);
  EXPECT_EQ(json["skew_wall"],
            Json::parse(R"({"min": 4.0, "median": null, "per_layer": [4.0, null]})"));
  EXPECT_EQ(json["moved_slots"]["total"], 3);
  EXPECT_EQ(json["rebalance_needed"], true);
  EXPECT_EQ(record["warnings"], Json::parse(R"(["another", "seen before"])"));
  EXPECT_TRUE(record_formulas().contains("placement_score"));
}

}  // namespace
}  // namespace epsweep
