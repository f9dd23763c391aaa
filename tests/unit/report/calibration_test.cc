#include "report/calibration.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "sample_point.h"

namespace epsweep::testing {
namespace {

// EP2 and EP4, every stage 10 us on every rank; the busiest rank sends 4 rows of 32 bytes, in
// groups of `domains` domains a half of them out of its own.
Calibration calibration(int domains) {
  RunData run{.dir = "cal", .run = {{"provenance", {{"device", "a GPU"}}}}, .points = {}};
  for (const int ep_size : {2, 4}) {
    Json record = make_point_record(measured_input(sample_point(ep_size, 8)));
    for (const char* stage : {"dispatch", "combine"}) {
      record["bytes"][stage]["max_remote_rows_sent"] = 2 * ep_size;
      record["bytes"][stage]["a_inter_copies"] = domains > 1 ? 4 : 0;
      record["stages"][stage]["exchange"]["transfer_us"]["p50"] = 10 * ep_size;
    }
    record["bytes"]["num_domains"] = domains;
    run.points.push_back(record);
  }
  return {.run = std::move(run), .ffn = std::nullopt};
}

// 8 experts of two rows: 4 and 2 slots of a rank. 10 us both: all of it is fixed.
TEST(Calibration, TakesTheTimesOfItsPoints) {
  const StageCosts costs = calibrated_costs(calibration(1), sample_point(8, 8));
  EXPECT_NEAR(costs.ffn.fixed_s(), 10e-6, 1e-11);
  // 4 rows of 32 bytes in 20 us, 8 in 40: 128 bytes in 20 us.
  ASSERT_TRUE(costs.dispatch.within && costs.combine.within);
  EXPECT_NEAR(costs.dispatch.within->line.beta_bytes_per_s, 6.4e6, 1);
  EXPECT_EQ(costs.dispatch.within->widest, 4);
  EXPECT_FALSE(costs.dispatch.across);
  EXPECT_NEAR(costs.by_tokens[0]->predict_s(1000), 10e-6, 1e-11);  // the same at 2 and 4 tokens
  EXPECT_NEAR(costs.count_by_peers->predict_s(7), 10e-6, 1e-11);
  EXPECT_EQ(costs.narrowest_count, 2);
}

// Half of the same bytes leave the domain.
TEST(Calibration, KnowsWhatLeftTheDomain) {
  const StageCosts costs = calibrated_costs(calibration(2), sample_point(8, 8));
  ASSERT_TRUE(costs.dispatch.across);
  EXPECT_FALSE(costs.dispatch.within);
  EXPECT_NEAR(costs.dispatch.across->line.beta_bytes_per_s, 3.2e6, 1);
}

TEST(Calibration, RefusesWhatItIsNotOf) {
  const Calibration run = calibration(1);
  SweepPoint other = sample_point(8, 8);
  other.model.hidden_dim = 32;
  EXPECT_THROW(calibrated_costs(run, other), ConfigError);
  SweepPoint kernel = sample_point(8, 8);
  kernel.grouped_gemm = "other";
  EXPECT_THROW(calibrated_costs(run, kernel), ConfigError);
  kernel.grouped_gemm = "declared";  // any
  EXPECT_NO_THROW(calibrated_costs(run, kernel));
  EXPECT_THROW(calibrated_costs(run, sample_point(1, 8)), ConfigError);  // no EP1
  EXPECT_THROW(check_hardware(run, "h200"), ConfigError);
  EXPECT_NO_THROW(check_hardware(run, ""));
  Calibration failed = run;
  for (Json& record : failed.run.points) record["state"] = "impossible";
  EXPECT_THROW(calibrated_costs(failed, sample_point(8, 8)), ConfigError);
}

// One expert of the same widths with 16 rows at EP1, as a rank of EP8 has: 8 us.
TEST(Calibration, TakesMoreExpertFfns) {
  Calibration both = calibration(1);
  SweepPoint one = sample_point(1, 16);
  one.model.num_experts = one.model.top_k = 1;
  PointRecordInput input = measured_input(one, 8e-6);
  input.workload->rows_per_expert = {{16}};
  both.ffn = RunData{.dir = "ffn", .run = both.run.run, .points = {make_point_record(input)}};
  const StageCosts costs = calibrated_costs(both, sample_point(8, 8));
  const auto forecast = costs.ffn.forecast(std::vector<std::int64_t>{16});
  EXPECT_NEAR(forecast->time.seconds, 8e-6, 1e-11);
  EXPECT_EQ(forecast->basis, FfnBasis::interpolated);
  EXPECT_EQ(calibration_json(both)["ffn_dir"], "ffn");
  EXPECT_NO_THROW(check_hardware(both, ""));
  both.ffn->run["threads_per_rank"] = 2;
  EXPECT_THROW(check_hardware(both, ""), ConfigError);
  both.run.run["threads_per_rank"] = 2;
  EXPECT_NO_THROW(check_hardware(both, ""));
  both.ffn->run["provenance"]["device"] = "another";
  EXPECT_THROW(check_hardware(both, ""), ConfigError);
  both.ffn->points[0]["point"]["model"]["ffn_dim"] = 9;
  EXPECT_THROW(calibrated_costs(both, sample_point(8, 8)), ConfigError);
}

// Whatever a damaged record has in place of its numbers.
TEST(Calibration, DamagedRecordsAreNoCrash) {
  Calibration run = calibration(1);
  run.run.points[0]["point"]["ep_size"] = 1e300;
  run.run.points[1]["rows_per_expert"]["per_layer"] = {{"a", nullptr}};
  EXPECT_THROW(calibrated_costs(run, sample_point(8, 8)), ConfigError);
  EXPECT_EQ(calibration_json(run)["device"], "a GPU");
}

// Where FFNs are measured elsewhere, any kernel's exchanges will do, and no table is needed.
TEST(Calibration, NeedsNoFfnsWhereTheyAreMeasured) {
  Calibration run = calibration(1);
  for (Json& record : run.run.points) record["point"]["placement"] = "eplb";
  SweepPoint kernel = sample_point(8, 8);
  kernel.grouped_gemm = "other";
  EXPECT_THROW(calibrated_costs(run, kernel), ConfigError);
  EXPECT_THROW(calibrated_costs(run, sample_point(8, 8)), ConfigError);
  run.ffn_from = FfnFrom::measurement;
  const StageCosts costs = calibrated_costs(run, kernel);
  EXPECT_TRUE(costs.ffn.empty());
  EXPECT_TRUE(costs.dispatch.within);
}

TEST(Calibration, IsOfTheRanksThatMeasure) {
  Calibration run = calibration(1);
  run.run.run["threads_per_rank"] = 2;
  EXPECT_NO_THROW(check_device(run, "a GPU", 2));
  EXPECT_THROW(check_device(run, "a GPU", 1), ConfigError);
  EXPECT_THROW(check_device(run, "another", 2), ConfigError);
  run.run.run["simulated"] = true;
  EXPECT_NO_THROW(check_device(run, "another", 1));
}

}  // namespace
}  // namespace epsweep::testing
