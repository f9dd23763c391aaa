// What records and reports say about the expert FFN's kernels.
#include "report/gemm_json.h"

#include <gmock/gmock.h>

#include "report/choice_lines.h"
#include "report/point_record.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using ::testing::HasSubstr;
using testing::measured_input;
using testing::sample_model;
using testing::sample_point;

// Two layers on two ranks: calls, routed, computed and stored rows, workspace.
FfnGemms two_by_two() {
  FfnGemms gemms;
  gemms.gate_up = {{{1, 10, 16, 32, 100, nullptr}, {2, 20, 24, 48, 7, nullptr}},
                   {{3, 30, 32, 64, 100, nullptr}, {4, 40, 40, 80, 300, nullptr}}};
  gemms.down = gemms.gate_up;
  return gemms;
}

TEST(GemmJson, SumsAndKeepsEveryLayerAndRank) {
  const Json gate_up = m_distribution_json(sample_model(), {2, 2}, two_by_two())["gate_up"];
  EXPECT_EQ(gate_up["kernel_calls"], 1 + 2 + 3 + 4);
  EXPECT_EQ(gate_up["routed_rows"], 100);
  EXPECT_EQ(gate_up["computed_rows"], 112);
  EXPECT_EQ(gate_up["stored_rows"], 224);
  EXPECT_EQ(gate_up["workspace_bytes"], 7 + 300);  // rank 1's, both layers
  EXPECT_EQ(gate_up["per_layer"]["kernel_calls"], Json::parse("[[1, 2], [3, 4]]"));
  EXPECT_EQ(gate_up["per_layer"]["routed_rows"], Json::parse("[[10, 20], [30, 40]]"));
  EXPECT_EQ(gate_up["per_layer"]["computed_rows"], Json::parse("[[16, 24], [32, 40]]"));
  EXPECT_EQ(gate_up["per_layer"]["stored_rows"], Json::parse("[[32, 48], [64, 80]]"));
  EXPECT_EQ(gate_up["per_layer"]["workspace_bytes"], Json::parse("[[100, 7], [100, 300]]"));
  EXPECT_EQ(gate_up["choices"], nullptr);
}

TEST(GemmJson, IsNullWhereNothingRan) {
  const Json down = m_distribution_json(sample_model(), {2, 2}, std::nullopt)["down"];
  EXPECT_EQ(down["rows_per_expert"]["total"], 4);
  for (const char* key : {"kernel_calls", "routed_rows", "computed_rows", "stored_rows",
                          "workspace_bytes", "per_layer", "choices"}) {
    EXPECT_TRUE(down.contains(key) && down[key].is_null()) << key;
  }
}

Json choice(const std::string& chosen, double gemv_us, double loop_us) {
  return {{"chosen", chosen},
          {"candidates",
           {{{"name", "gemv"}, {"us", gemv_us}, {"kernel_calls", 1}, {"left_out", nullptr}},
            {{"name", "loop"}, {"us", loop_us}, {"kernel_calls", 9}, {"left_out", nullptr}},
            {{"name", "odd"}, {"us", nullptr}, {"kernel_calls", nullptr}, {"left_out", "why"}}}}};
}

// Of three (layer, rank)s that picked, two took gemv.
FfnGemms with_choices() {
  FfnGemms gemms = two_by_two();
  gemms.gate_up[0][0].choice = choice("gemv", 10, 30);
  gemms.gate_up[0][1].choice = choice("gemv", 12.5, 31);
  gemms.gate_up[1][1].choice = choice("loop", 40, 30);
  return gemms;
}

TEST(GemmJson, SaysWhatWasMeasuredAndChosen) {
  const Json choices =
      m_distribution_json(sample_model(), {2}, with_choices())["gate_up"]["choices"];
  ASSERT_EQ(choices.size(), 3U);
  EXPECT_EQ(choices[2]["layer"], 1);
  EXPECT_EQ(choices[2]["rank"], 1);
  EXPECT_EQ(choices[2]["chosen"], "loop");
  EXPECT_EQ(choices[2]["candidates"][0]["us"], 40);
  EXPECT_EQ(choices[2]["candidates"][2]["left_out"], "why");
}

TEST(ChoiceLines, ShowHowOftenAndHowFast) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  const Json none = make_point_record(input);
  EXPECT_EQ(choice_text({{&none, "a"}}, {}), "");
  input.gemms = with_choices();
  const Json record = make_point_record(input);
  EXPECT_EQ(choice_text({{&record, "a"}}, {}),
            "\nKernels that were picked\n"
            "  taken by (layer, rank)s; us: least to most of their cold medians, with the rank's "
            "own rows\n"
            "  EP2 8 tok/group gate_up: gemv 2 of 3, loop 1 of 3\n"
            "    gemv 10.0-40.0, loop 30.0-31.0; left out: odd (why)\n");
}

// amx says which code it runs: nothing to show unless it could not take its best.
TEST(ChoiceLines, AreSilentWithoutCandidates) {
  PointRecordInput input = measured_input(sample_point(2, 8));
  FfnGemms gemms = two_by_two();
  gemms.down[0][0].choice = {{"chosen", "tiles"}, {"candidates", Json::array()}};
  input.gemms = gemms;
  Json record = make_point_record(input);
  EXPECT_EQ(choice_text({{&record, "a"}}, {}), "");
  gemms.down[0][0].choice = {
      {"chosen", "vectors"},
      {"candidates", {{{"name", "tiles"}, {"us", nullptr}, {"left_out", "no AMX"}}}}};
  input.gemms = gemms;
  record = make_point_record(input);
  EXPECT_EQ(choice_text({{&record, "a"}}, {}),
            "\nKernels that were picked\n"
            "  taken by (layer, rank)s; us: least to most of their cold medians, with the rank's "
            "own rows\n"
            "  EP2 8 tok/group down: vectors 1 of 1\n"
            "    left out: tiles (no AMX)\n");
}

}  // namespace
}  // namespace epsweep
