#include "report/tables.h"

#include <memory>

#include <gtest/gtest.h>

#include "report/point_record.h"
#include "report/text_table.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using testing::measured_input;
using testing::sample_point;
using testing::skipped_input;

RunData run_of(std::vector<Json> points, const std::string& dir = "results/a") {
  return {dir, Json::object(), std::move(points)};
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// The whole line around the first `part`.
std::string line_with(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

TEST(TextTable, Aligns) {
  EXPECT_EQ(render({{{"a", Align::left}, {"number"}}, {{"xyz", "1"}, {"", "-"}}}),
            "a    number\n"
            "---  ------\n"
            "xyz       1\n"
            "          -\n");
}

TEST(TextTable, ShortNumbers) {
  EXPECT_EQ(short_number(std::nullopt), "-");
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.00123), "1.2e-03");
  EXPECT_EQ(short_number(1.234), "1.23");
  EXPECT_EQ(short_number(123.46), "123.5");
  EXPECT_EQ(short_number(123456.7), "123457");
  EXPECT_EQ(short_percent(0.1234), "12.3");
  EXPECT_EQ(short_percent(std::nullopt), "-");
}

TEST(Tables, GoldenText) {
  const std::string text =
      report_text({run_of({make_point_record(measured_input(sample_point(4, 8))),
                           make_point_record(measured_input(sample_point(2, 8), 20e-6)),
                           make_point_record(skipped_input(sample_point(8, 8), "too big"))})});
  EXPECT_EQ(text, R"GOLDEN(# results/a
3 points: 2 measured, 1 skipped

## tiny, fixed_global: tokens of a group held while EP size varies
8 experts, top_k 2, expert_io_dim 16, ffn_dim 8
routing uniform, placement contiguous, redundant_slots 0, exchange_unit assignment, transport pairwise, launch direct,
grouped_gemm plain, dtype bf16, mapping packed, groups fill, weight_cache flush, layers 1, vary_routing 1, warmup 0,
iterations 20, seed 1, step 0, repeat 0

Latency and throughput
(layer: us per layer, layers back to back (chained), slowest rank inside each chain; 95 %: interval of its median; stages: sum of the slowest ranks' stages started together (aligned), us; cpu: us the slowest rank computed in them; /rank: ranks in groups; GB/s of touched weights; roof: ffn's % of its roofline; slowest: world rank (how often))
  EP  tok/group  tok/rank  layer p50         95 %    p90  p99  stages   cpu   tok/s  tok/s/rank  GFLOP/s/rank  GB/s/rank  roof %  groups  idle   slowest
  --  ---------  --------  ---------  -----------  -----  ---  ------  ----  ------  ----------  ------------  ---------  ------  ------  ----  --------
   2          8         4      140.0  140.0-140.0  140.0    -   140.0  40.0   57143       28571          0.31       0.15       -       1     0  0 (100%)
   4          8         2       70.0    70.0-70.0   70.0    -    70.0  20.0  114286       28571          0.31       0.15       -       1     0  0 (100%)

Stages
(aligned, p50 us per layer: of exchanges the transfer (last rank in to last rank out), else the rank slowest in that stage; ffn: that rank, us it computed, and the fastest one; exch, ffn: % of their sum; GB/s: remote dispatch per rank, letter of what is sent)
  EP  tok/group  tok/rank  router  count_exchange  permute  dispatch  expert_ffn  combine  unpermute  ffn rank  ffn cpu  ffn min  exch %  ffn %       GB/s
  --  ---------  --------  ------  --------------  -------  --------  ----------  -------  ---------  --------  -------  -------  ------  -----  ---------
   2          8         4    20.0            20.0     20.0      20.0        20.0     20.0       20.0  0 (100%)     10.0     20.0    42.9   14.3  6.4e-03 A
   4          8         2    10.0            10.0     10.0      10.0        10.0     10.0       10.0  0 (100%)     5.00     10.0    42.9   14.3  6.4e-03 A

Rows per expert (M) and dispatch bytes
(empty, pad: %; stored: padding in memory, %; rank max/mean: rows per rank; calls: both GEMMs; work: a rank's kernel memory; MB: A per assignment, B per rank, C per domain, D per remote rank, E per remote domain; calls and MB of a group and layer)
  EP  tok/group  tok/rank  M mean  P10  median  P90  max  max/mean  empty  rank max/mean  calls   pad  stored  work MB   A self  A remote        B  C        D  E
  --  ---------  --------  ------  ---  ------  ---  ---  --------  -----  -------------  -----  ----  ------  -------  -------  --------  -------  -  -------  -
   2          8         4    2.00    2       2    2    2      1.00    0.0           1.00     16  12.5    25.0     1.50  2.6e-04   2.6e-04  3.8e-04  -  1.9e-04  -
   4          8         2    2.00    2       2    2    2      1.00    0.0           1.00     16  12.5    25.0     1.50  2.6e-04   2.6e-04  3.8e-04  -  1.9e-04  -

Not measured
  EP8 8 tok/group: skipped: too big

Why (us per layer, later minus earlier EP size, of medians over repeats [their spread]; terms add up to the difference; x: factor on tokens/s per rank at the same tokens)

  EP2 -> EP8, fixed_global 8
    EP8 was not measured (skipped: too big). EP2 has nothing to be compared to.
)GOLDEN");
}

TEST(Tables, PointsAboveACeilingAreNamedAndLeftOut) {
  PointRecordInput above = measured_input(sample_point(4, 8));
  above.state = PointState::impossible;
  above.reason = "expert_ffn of rank 1 computes 2 GFLOP/s, above 1 GFLOP/s";
  const std::string text = report_text(
      {run_of({make_point_record(above), make_point_record(measured_input(sample_point(2, 8)))})});
  EXPECT_EQ(count_of(text, "2 points: 1 impossible, 1 measured"), 1);
  EXPECT_EQ(count_of(text, "EP4 8 tok/group: impossible: expert_ffn of rank 1 computes"), 1);
  EXPECT_EQ(count_of(text, "\n   4 "), 0);
  EXPECT_EQ(count_of(text, "\n   2 "), 3);
}

TEST(Tables, CeilingsStandAboveTheTables) {
  RunData run = run_of({make_point_record(measured_input(sample_point(2, 8)))});
  run.run["ceilings"] = {{"took_s", {{"gemm", 0.5}}}, {"rates", Json::array()}};
  const std::string text = report_text({run});
  EXPECT_LT(text.find("\nCeilings, measured in this run"), text.find("\n## tiny"));
}

// Case C02: the two ways to hold the load never share a table.
TEST(Tables, ConcurrencyModesStayApart) {
  const auto record = [](int ep_size, std::int64_t tokens, ConcurrencyMode mode) {
    return make_point_record(measured_input(sample_point(ep_size, tokens, mode)));
  };
  const std::string text = report_text({run_of({record(2, 8, ConcurrencyMode::fixed_global),
                                                record(2, 4, ConcurrencyMode::fixed_per_rank),
                                                record(4, 8, ConcurrencyMode::fixed_global),
                                                record(4, 4, ConcurrencyMode::fixed_per_rank)})});
  const std::size_t global = text.find("## tiny, fixed_global");
  const std::size_t per_rank = text.find("## tiny, fixed_per_rank");
  ASSERT_NE(global, std::string::npos);
  ASSERT_NE(per_rank, std::string::npos);
  EXPECT_EQ(count_of(text, "\n## "), 2);
  EXPECT_EQ(count_of(text, "Latency and throughput"), 2);
  // EP4 holds 8 tokens in one mode and 16 in the other.
  const std::string first = text.substr(global, per_rank - global);
  EXPECT_EQ(count_of(first, "   4          8         2"), 3) << first;
  EXPECT_EQ(count_of(first, "        16         4"), 0);
  EXPECT_EQ(count_of(text.substr(per_rank), "   4         16         4"), 3);
}

TEST(Tables, AChangedModelUnderTheSameNameIsAnotherTable) {
  SweepPoint wide = sample_point(4, 8);
  wide.model.ffn_dim = 16;
  const std::string text =
      report_text({run_of({make_point_record(measured_input(sample_point(4, 8))),
                           make_point_record(measured_input(wide))})});
  EXPECT_EQ(count_of(text, "\n## "), 2);
}

TEST(Tables, MarksOversubscribedAndLoadedRows) {
  PointRecordInput crowded = measured_input(sample_point(4, 8));
  crowded.load = {.ranks = 4, .cores = 2, .foreign_load = 0.01};
  PointRecordInput loaded = measured_input(sample_point(2, 8));
  loaded.load.foreign_load = 0.12;
  PointRecordInput quiet = measured_input(sample_point(1, 8));
  quiet.load.foreign_load = 0.05;
  const std::string text = report_text(
      {run_of({make_point_record(crowded), make_point_record(loaded), make_point_record(quiet)})});
  EXPECT_NE(text.find("! more ranks than cores (4 on 2): timings not fit for comparison\n"),
            std::string::npos);
  EXPECT_NE(text.find("~ other programs took more than 5 % of the host (worst 12.0 %)\n"),
            std::string::npos);
  EXPECT_EQ(count_of(text, "\n!   4 "), 3);
  EXPECT_EQ(count_of(text, "\n~   2 "), 3);
  EXPECT_EQ(count_of(text, "\n    1 "), 3);
  const std::string calm = report_text({run_of({make_point_record(quiet)})});
  EXPECT_EQ(calm.find("more ranks than cores"), std::string::npos);
  EXPECT_EQ(calm.find("other programs"), std::string::npos);
}

TEST(Tables, MarksRowsOfSharedDevices) {
  PointRecordInput shared = measured_input(sample_point(4, 8));
  shared.load.ranks_per_device = 4;
  PointRecordInput own = measured_input(sample_point(2, 8));
  own.load.ranks_per_device = 1;
  const std::string text =
      report_text({run_of({make_point_record(shared), make_point_record(own)})});
  EXPECT_EQ(count_of(text, "\n#   4 "), 3);
  EXPECT_EQ(count_of(text, "\n    2 "), 3);
  EXPECT_NE(text.find("# up to 4 ranks share a device: shows that it works, not how fast\n"),
            std::string::npos);
}

TEST(Tables, WhatWasNotMeasuredIsListedWithItsReason) {
  PointRecordInput failed = measured_input(sample_point(2, 8));
  failed.state = PointState::failed;
  failed.reason = "token 3 is wrong";
  const std::string text =
      report_text({run_of({make_point_record(skipped_input(sample_point(8, 8), "4.1 GiB short")),
                           make_point_record(failed)})});
  EXPECT_NE(text.find("2 points: 1 failed, 1 skipped\n"), std::string::npos);
  EXPECT_NE(text.find("  EP8 8 tok/group: skipped: 4.1 GiB short\n"), std::string::npos);
  EXPECT_NE(text.find("  EP2 8 tok/group: failed: token 3 is wrong\n"), std::string::npos);
  EXPECT_EQ(text.find("Latency and throughput"), std::string::npos);  // nothing to show
}

TEST(Tables, VaryingAxesAreColumnsAndTheRestIsHeading) {
  SweepPoint skewed = sample_point(4, 8);
  skewed.routing.distribution = "zipf";
  skewed.routing.params = {{"zipf_alpha", 1.2}};
  const std::string text =
      report_text({run_of({make_point_record(measured_input(sample_point(4, 8))),
                           make_point_record(measured_input(skewed))})});
  EXPECT_NE(line_with(text, "layer p50").find("routing"), std::string::npos);
  EXPECT_EQ(line_with(text, "layer p50").find("placement"), std::string::npos);
  EXPECT_EQ(count_of(text, "zipf(zipf_alpha=1.2)"), 3);
  EXPECT_NE(text.find("placement contiguous, redundant_slots 0, exchange_unit"), std::string::npos);
}

TEST(Tables, TransportsOfFixedCapacitySayTheirFactor) {
  SweepPoint roomy = sample_point(4, 8), captured = sample_point(4, 8);
  roomy.capacity_factor = captured.capacity_factor = 1.25;
  captured.launch = Launch::graph;
  const std::string text = report_text({run_of(
      {make_point_record(measured_input(roomy)), make_point_record(measured_input(captured))})});
  EXPECT_NE(text.find("pairwise(capacity_factor=1.25)"), std::string::npos);
  EXPECT_NE(line_with(text, "layer p50").find("launch"), std::string::npos);
}

TEST(Tables, PlacementsFromTwoFilesAreTold) {
  const auto with_file = [](const std::string& name) {
    PlacementMap map;
    map.file = "dir/" + name;
    map.file_checksum = "0123456789abcdef";
    SweepPoint point = sample_point(4, 8);
    point.placement = "map";
    point.placement_map = std::make_shared<const PlacementMap>(map);
    return make_point_record(measured_input(point));
  };
  const std::string text = report_text({run_of({with_file("a.yaml"), with_file("b.yaml")})});
  EXPECT_NE(text.find("map(a.yaml 01234567)"), std::string::npos) << text;
  EXPECT_NE(text.find("map(b.yaml 01234567)"), std::string::npos) << text;
}

TEST(Tables, AlternatingSlowRanksAreCalledThat) {
  ChainTable table = testing::even_chains(4, 20, 70e-6);
  for (int i = 0; i < 20; ++i) table.end_s(i % 4, i, 3) += 1e-6;
  PointRecordInput input = measured_input(sample_point(4, 8));
  EXPECT_EQ(report_text({run_of({make_point_record(input)})}).find("alternates"),
            std::string::npos);
  input.timings->chain = summarize_chain(table);
  EXPECT_NE(report_text({run_of({make_point_record(input)})}).find("0 (25%) alternates\n"),
            std::string::npos);
}

// Neighbouring rows are the EP sizes of one load.
TEST(Tables, RowsAreSortedByLoadThenEpSize) {
  std::vector<Json> records;
  for (const int ep_size : {4, 2}) {
    for (const std::int64_t tokens : {16, 8}) {
      records.push_back(make_point_record(measured_input(sample_point(ep_size, tokens))));
    }
  }
  const std::string text = report_text({run_of(records)});
  std::size_t last = 0;
  for (const char* row :
       {"\n   2          8 ", "\n   4          8 ", "\n   2         16 ", "\n   4         16 "}) {
    const std::size_t at = text.find(row);
    ASSERT_NE(at, std::string::npos) << row;
    EXPECT_GT(at, last) << row;
    last = at;
  }
}

TEST(Tables, PercentilesOfFewSamplesAreAbsent) {
  SweepPoint few = sample_point(4, 8);
  few.iterations = 5;
  SweepPoint many = sample_point(2, 8);
  many.iterations = 100;
  const std::string text = report_text(
      {run_of({make_point_record(measured_input(few)), make_point_record(measured_input(many))})});
  EXPECT_NE(text.find("   4          8         2  5                70.0          -     -     -"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("   2          8         4  100              70.0  70.0-70.0  70.0  70.0"),
            std::string::npos)
      << text;
}

TEST(Tables, RunsShareTablesOnlyWithTheSameIdentity) {
  const Json record = make_point_record(measured_input(sample_point(4, 8)));
  RunData a = run_of({record}, "a"), b = run_of({record}, "b");
  EXPECT_EQ(count_of(report_text({a, b}), "\n## "), 2);
  a.run["identity"] = "same";
  b.run["identity"] = "same";
  const std::string merged = report_text({a, b});
  EXPECT_EQ(count_of(merged, "\n## "), 1);
  EXPECT_EQ(merged.find("# a, b\n2 points: 2 measured\n"), 0u);
  EXPECT_NE(line_with(merged, "layer p50").find("run"), std::string::npos);
  b.run["identity"] = "other";
  EXPECT_EQ(count_of(report_text({a, b}), "\n## "), 2);
}

TEST(Tables, ReReadRecordsPrintTheSame) {
  const Json record = make_point_record(measured_input(sample_point(4, 8), 1.0 / 3));
  const Json again = parse_json(to_json_line(record), "record");
  EXPECT_EQ(report_text({run_of({record})}), report_text({run_of({again})}));
}

// Records of another build may lack what this one prints.
TEST(Tables, MissingKeysAreDashes) {
  Json record = make_point_record(measured_input(sample_point(4, 8)));
  record.erase("metrics");
  record.erase("bytes");
  EXPECT_NO_THROW(report_text({run_of({record})}));
}

TEST(Tables, JsonIsAnArrayOfRecords) {
  const Json record = make_point_record(measured_input(sample_point(4, 8)));
  EXPECT_EQ(parse_json(records_json({record, record}), "json"), Json::array({record, record}));
  EXPECT_EQ(parse_json(records_json({}), "json"), Json::array());
}

TEST(Tables, ARunThatDidNotFinishSaysSo) {
  RunData run = run_of({make_point_record(measured_input(sample_point(2, 8)))});
  run.run["num_points"] = 24;
  EXPECT_NE(report_text({run}).find(" of 24 planned points: "), std::string::npos);
  EXPECT_NE(report_text({run}).find("the run did not finish"), std::string::npos);
  run.run["finished_utc"] = "2026-01-01T00:00:00Z";
  EXPECT_EQ(report_text({run}).find("did not finish"), std::string::npos);
}

}  // namespace
}  // namespace epsweep
