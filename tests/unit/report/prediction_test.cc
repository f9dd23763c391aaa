#include <gtest/gtest.h>

#include "base/error.h"
#include "report/prediction_json.h"
#include "report/table_columns.h"
#include "report/tables.h"
#include "sample_point.h"

namespace epsweep::testing {
namespace {

// 2 ranks, 8 tokens, every stage 10 us on every rank: transfers of 10 us each.
PointRecordInput predicted_input(double beta_bytes_per_s) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  PointWorkload& work = *input.workload;
  work.busiest_a_rows = {4};
  work.ffn_of_routing = {work.ffn_of_rank};
  // 8 rows * 2 * 384 operations; 4 experts of 768 bytes.
  const RankCeilings rank{.flop_per_s = 1e12, .read_bytes_per_s = 3072e5};
  input.ceilings = PointCeilings{
      .ranks = {rank, rank},
      .exchange = ExchangeLine{.alpha_s = 2e-6, .beta_bytes_per_s = beta_bytes_per_s}};
  return input;
}

Json prediction_of(const PointRecordInput& input) {
  return make_point_record(input)["prediction"];
}

// 4 rows of 32 bytes at 16 MB/s: 2 + 8 us. 3072 bytes at 307.2 MB/s: 10 us.
TEST(Prediction, StandsBesideWhatWasMeasured) {
  const Json prediction = prediction_of(predicted_input(16e6));
  for (const char* term : {"dispatch", "combine"}) {
    EXPECT_NEAR(prediction[term]["predicted_us"].get<double>(), 10, 1e-9);
    EXPECT_NEAR(prediction[term]["alpha_us"].get<double>(), 2, 1e-9);
    EXPECT_NEAR(prediction[term]["bytes_us"].get<double>(), 8, 1e-9);
    EXPECT_NEAR(prediction[term]["measured_us"].get<double>(), 10, 1e-6);
    EXPECT_NEAR(prediction[term]["error"].get<double>(), 0, 1e-6);
    EXPECT_EQ(prediction[term]["letter"], "A");
  }
  EXPECT_EQ(prediction["exchange"]["limit"], "fabric-limited as modelled");
  EXPECT_NEAR(prediction["expert_ffn"]["predicted_us"].get<double>(), 10, 1e-9);
  EXPECT_EQ(prediction["expert_ffn"]["bound"], "memory");
}

// At 128 MB/s an exchange would take 3 us: 10 us are 233 % more.
TEST(Prediction, ResidualsAreNamed) {
  const Json prediction = prediction_of(predicted_input(128e6));
  EXPECT_NEAR(prediction["exchange"]["error"].get<double>(), 20.0 / 6 - 1, 1e-6);
  EXPECT_EQ(prediction["exchange"]["limit"], "software- or contention-limited");
}

TEST(Prediction, IsNullWithoutCeilings) {
  PointRecordInput input = predicted_input(16e6);
  input.ceilings.reset();
  EXPECT_TRUE(prediction_of(input).is_null());
}

TEST(Prediction, FailedPointsKeepWhatWasPredicted) {
  PointRecordInput input = predicted_input(16e6);
  input.state = PointState::failed;
  input.reason = "wrong values";
  const Json prediction = prediction_of(input);
  EXPECT_NEAR(prediction["dispatch"]["predicted_us"].get<double>(), 10, 1e-9);
  EXPECT_TRUE(prediction["dispatch"]["measured_us"].is_null());
  EXPECT_TRUE(prediction["exchange"]["limit"].is_null());
}

TEST(Prediction, ReportShowsItBesideMeasured) {
  const auto report_of = [](const PointRecordInput& input) {
    return report_text({{.dir = "a", .run = Json::object(), .points = {make_point_record(input)}}});
  };
  const std::string text = report_of(predicted_input(128e6));
  EXPECT_NE(text.find("Predicted from this run's ceilings, beside measured"), std::string::npos);
  EXPECT_NE(text.find("3.00      10.0   +233.3"), std::string::npos) << text;
  EXPECT_NE(text.find("software- or contention-limited"), std::string::npos);
  PointRecordInput without = predicted_input(16e6);
  without.ceilings.reset();
  EXPECT_EQ(report_of(without).find("Predicted from"), std::string::npos);
}

// A predicted point, with its label where compute was measured.
Json predicted_record(const Json& label) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  input.state = PointState::predicted;
  input.check = CheckResult{.verdict = CheckVerdict::not_run};
  input.prediction = {{"from", "calibration a"}, {"layer", {{"low_us", 1.0}}}};
  if (!label.is_null()) input.prediction["label"] = label;
  return make_point_record(input);
}

TEST(Prediction, MeasuredComputeIsLabelledInEveryTable) {
  const auto report_of = [](const std::vector<Json>& records) {
    return report_text({{.dir = "a", .run = Json::object(), .points = records}});
  };
  const char* const label = "measured compute + predicted exchange";
  const Json computed = predicted_record(label), plain = predicted_record(nullptr);
  EXPECT_EQ(row_mark(computed), "V");
  EXPECT_EQ(row_mark(plain), "P");
  const std::string text = report_of({computed});
  EXPECT_NE(text.find("V measured compute + predicted exchange: router, permute, expert_ffn and "
                      "unpermute timed on ranks in their place, exchanges from calibration a"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("nothing was measured"), std::string::npos);
  const std::string without = report_of({plain});
  EXPECT_EQ(without.find(label), std::string::npos);
  EXPECT_NE(without.find("P predicted from calibration a: nothing was measured or checked"),
            std::string::npos);
}

}  // namespace
}  // namespace epsweep::testing
