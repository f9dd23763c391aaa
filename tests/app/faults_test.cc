// Case C59: deliberate faults on real ranks are caught, at the EP size where they happen.
#include "faults/faults.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::HasSubstr;

struct Case {
  const char* fault;
  const char* said;
  const char* exchange_unit;
};

class Faults : public testing::TestWithParam<Case> {};

TEST_P(Faults, AreCaughtWhereTheyHappenAndNowhereElse) {
  const TempDir dir;
  const std::string experiment = dir.write(
      "x.yaml",
      toy_experiment({"model: {name: m, hidden_dim: 64, ffn_dim: 32, num_experts: 16, top_k: 2, "
                      "num_moe_layers: 1}",
                      "ep_sizes: [4, 8]", "concurrency: {fixed_global: [64]}",
                      std::string("exchange_unit: ") + GetParam().exchange_unit}));
  const ProgramResult result =
      run_on_ranks(8, "run " + experiment + " --out " + dir.path("out") + " --inject " +
                          GetParam().fault + ":rank=1:ep_size=8");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  const std::vector<Json> records = records_of(dir.path("out"));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0]["state"], "measured");
  EXPECT_EQ(records[1]["state"], "failed");
  EXPECT_THAT(records[1]["reason"].get<std::string>(), HasSubstr(GetParam().said));
  EXPECT_TRUE(records[1]["metrics"].is_null());
  EXPECT_EQ(records[1]["harness_s"]["measured"], 0);
  EXPECT_TRUE(records[1]["stages"].is_null());
}

// With unit rank the end of a dispatched message is the list of uses, which the receiver compares
// with the counts.
INSTANTIATE_TEST_SUITE_P(Kinds, Faults,
                         testing::Values(Case{"swap_experts", "off by", "assignment"},
                                         Case{"skip_expert", "never written", "assignment"},
                                         Case{"drop_row", "never written", "assignment"},
                                         Case{"swap_experts", "off by", "rank"},
                                         Case{"skip_expert", "never written", "rank"},
                                         Case{"drop_row", "are not the planned ones", "rank"}),
                         [](const auto& one) {
                           return std::string(one.param.fault) + "_" + one.param.exchange_unit;
                         });

TEST(ParseFault, ReadsKindRankAndEpSize) {
  const Fault fault = parse_fault("drop_row:rank=3:ep_size=8");
  EXPECT_EQ(fault.kind, FaultKind::drop_row);
  EXPECT_TRUE(fault.applies(3, 8));
  EXPECT_FALSE(fault.applies(3, 4));
  EXPECT_FALSE(fault.applies(2, 8));
  EXPECT_TRUE(parse_fault("skip_expert").applies(0, 5));
  for (const char* bad : {"drop_rows", "drop_row:rank=x", "drop_row:rank=-1", "drop_row:host=1"}) {
    EXPECT_THROW(parse_fault(bad), ConfigError) << bad;
  }
}

TEST(ParseFault, DelaysHaveAStageATimeAndIterations) {
  const Fault late = parse_fault("delay:rank=5:stage=dispatch:us=20000");
  EXPECT_EQ(delay_us({late}, 7, Stage::dispatch, DelayPlace::before), 20'000);
  EXPECT_EQ(delay_us({late}, 7, Stage::dispatch, DelayPlace::inside), 0);
  EXPECT_EQ(delay_us({late}, 7, Stage::combine, DelayPlace::before), 0);
  EXPECT_EQ(delay_us({late, late}, 7, Stage::dispatch, DelayPlace::before), 40'000);
  const Fault turns = parse_fault("delay:stage=router:us=5:place=inside:every=3:first=1");
  for (const int iteration : {0, 1, 2, 3, 4}) {
    EXPECT_EQ(delay_us({turns}, iteration, Stage::router, DelayPlace::inside),
              iteration % 3 == 1 ? 5 : 0);
  }
  const Fault spike = parse_fault("delay:stage=router:us=5:every=0:first=2");
  EXPECT_EQ(delay_us({spike}, 2, Stage::router, DelayPlace::before), 5);
  EXPECT_EQ(delay_us({spike}, 4, Stage::router, DelayPlace::before), 0);
  for (const char* bad : {"delay", "delay:us=5", "delay:stage=router", "delay:stage=rooter:us=5",
                          "delay:stage=router:us=0", "delay:stage=router:us=5:place=after",
                          "drop_row:us=5", "delay:stage=router:us=5:evry=2"}) {
    EXPECT_THROW(parse_fault(bad), ConfigError) << bad;
  }
}

// Case C31, on real ranks: who comes 20 ms late is named, the others wait, and what moves takes no
// longer. The bounds leave half of the delay to whatever else delays a rank on a busy machine.
TEST(Delays, CaseC31ALateRankMakesOthersWaitAndMovesNothing) {
  const TempDir dir;
  const std::string experiment =
      dir.write("x.yaml", toy_experiment({"ep_sizes: [8]", "iterations: 6"}));
  const ProgramResult result =
      run_on_ranks(8, "run " + experiment + " --out " + dir.path("out") +
                          " --inject delay:rank=5:stage=dispatch:us=20000");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json record = records_of(dir.path("out")).at(0);
  const Json& exchange = record["stages"]["dispatch"]["exchange"];
  EXPECT_EQ(exchange["last_in_rank"], 5);
  EXPECT_GT(exchange["last_in_share"].get<double>(), 0.5);
  EXPECT_GT(exchange["skew_in_us"]["p50"].get<double>(), 10'000);
  EXPECT_LT(exchange["transfer_us"]["p50"].get<double>(), 10'000);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    const double wait_us = exchange["wait_p50_us_of_rank"][rank].get<double>();
    if (rank == 5) {
      EXPECT_LT(wait_us, 10'000);
    } else {
      EXPECT_GT(wait_us, 10'000) << rank;
    }
  }
  // Layers back to back pay for it once each.
  EXPECT_GT(record["layer"]["slowest_us"]["p50"].get<double>(), 20'000);
}

TEST(Delays, InsideAStageTheRankIsSlowAndNobodyLate) {
  const TempDir dir;
  const std::string experiment =
      dir.write("x.yaml", toy_experiment({"ep_sizes: [2]", "iterations: 6"}));
  const ProgramResult result =
      run_on_ranks(2, "run " + experiment + " --out " + dir.path("out") +
                          " --inject delay:rank=1:stage=expert_ffn:us=20000:place=inside");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json record = records_of(dir.path("out")).at(0);
  const Json& ffn = record["stages"]["expert_ffn"];
  EXPECT_EQ(ffn["slowest_rank"], 1);
  EXPECT_GT(ffn["slowest_rank_share"].get<double>(), 0.5);
  EXPECT_GT(ffn["slowest_us"]["p50"].get<double>(), 20'000);
  EXPECT_LT(ffn["fastest_rank_p50_us"].get<double>(), 10'000);
  EXPECT_LT(record["stages"]["combine"]["exchange"]["skew_in_us"]["p50"].get<double>(), 10'000);
}

}  // namespace
}  // namespace epsweep
