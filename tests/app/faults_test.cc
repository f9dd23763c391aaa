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

}  // namespace
}  // namespace epsweep
