#include "report/compare.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "report/compare_text.h"
#include "sample_point.h"

namespace epsweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A record whose layer and stages take what is said, whatever `point` is.
Json record_of(const SweepPoint& point, double layer_us, double stage_us = 10) {
  PointRecordInput input = testing::measured_input(point, stage_us * 1e-6);
  input.timings->chain =
      summarize_chain(testing::even_chains(point.ep_size, point.iterations, layer_us * 1e-6));
  return make_point_record(input);
}

Json facts(const std::string& device = "H100") {
  return {{"backend", "cuda"}, {"provenance", {{"device", device}, {"cpu_model", "Xeon"}}}};
}

class Runs : public ::testing::Test {
 protected:
  RunData a{.dir = "a", .run = facts(), .points = {}}, b{.dir = "b", .run = facts(), .points = {}};

  // One record for each time, as repeats of one point.
  static void add(RunData& run, SweepPoint point, const std::vector<double>& layer_us,
                  double stage_us = 10) {
    for (const double us : layer_us) {
      point.index = static_cast<int>(run.points.size());
      run.points.push_back(record_of(point, us, stage_us));
      ++point.repeat;
    }
  }
  std::string refusal(const CompareRequest& request = {}) const {
    try {
      compare_runs(a, b, request);
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    return "compared";
  }
};

std::optional<QuantityChange> quantity(const Comparison& comparison, const std::string& name) {
  for (const QuantityChange& one : comparison.pairs.at(0).changes) {
    if (one.name == name) return one;
  }
  return std::nullopt;
}

SweepPoint point(int ep_size = 4, std::int64_t tokens = 8) {
  return testing::sample_point(ep_size, tokens);
}

// Case C60: a file with itself.
TEST_F(Runs, WithItselfAllIsZero) {
  add(a, point(), {100, 101, 99, 102});
  add(a, point(2), {70});
  a.run = Json::object();  // what it ran on does not matter then
  const Comparison comparison = compare_runs(a, a, {});
  ASSERT_THAT(comparison.pairs, SizeIs(2));
  for (const ComparedPair& pair : comparison.pairs) {
    EXPECT_THAT(pair.changes, SizeIs(2 + 1 + kNumStages));
    for (const QuantityChange& change : pair.changes) {
      EXPECT_EQ(change.relative, 0) << change.name;
      EXPECT_EQ(change.difference(), 0);
      EXPECT_EQ(change.change, Change::nothing);
    }
  }
  EXPECT_THAT(comparison.only_in_a, IsEmpty());
  EXPECT_THAT(comparison.only_in_b, IsEmpty());
  EXPECT_FALSE(
      check_regressions(comparison, {.share = 0, .few_repeats = FewRepeats::fail}).failed());
}

// One side looked twice at a load that was slow.
TEST_F(Runs, ASecondAttemptIsOneMoreMeasurement) {
  add(a, point(), {100});
  SweepPoint again = point();
  again.attempt = 2;
  add(a, again, {104});
  add(b, point(), {100});
  const Comparison comparison = compare_runs(a, b, {});
  ASSERT_THAT(comparison.pairs, SizeIs(1));
  EXPECT_THAT(comparison.pairs[0].match.a, SizeIs(2));
  EXPECT_THAT(comparison.only_in_a, IsEmpty());
}

// Case C33: EP8 100, 101, 99; EP32 98, 104, 100.
TEST_F(Runs, OverlapIsNoDifference) {
  add(a, point(2), {100, 101, 99});
  add(a, point(4), {98, 104, 100});
  const Comparison comparison = compare_runs(
      a, a, {.a = {{"ep_size", "2"}}, .b = {{"ep_size", "4"}}, .across = {}, .allow = {}});
  ASSERT_THAT(comparison.pairs, SizeIs(1));
  EXPECT_EQ(comparison.pairs[0].changes[0].name, "layer_p50_us");
  EXPECT_EQ(comparison.pairs[0].changes[0].change, Change::nothing);
  const std::string text = compare_text(comparison, std::nullopt);
  EXPECT_THAT(text, HasSubstr("100.0 (99.0-101.0)  100.0 (98.0-104.0)  (+0.0%)"));
  EXPECT_THAT(text, AllOf(HasSubstr("Regressions: none shown"), HasSubstr("-50.0%?")));
}

// Case C60: 8 tokens in 100 us, 16 in 120: per rank of four 20,000 and 33,333 tokens per second.
TEST_F(Runs, LatencyAndThroughputUpAreOneRegressionAndOneImprovement) {
  add(a, point(4, 8), {100, 101, 100, 99});
  add(a, point(4, 16), {120, 121, 120, 119});
  const Comparison comparison = compare_runs(
      a, a, {.a = {{"tokens", "8"}}, .b = {{"tokens", "16"}}, .across = {}, .allow = {}});
  const std::vector<NamedChange> worse = outcomes_with(comparison, Change::worse);
  const std::vector<NamedChange> better = outcomes_with(comparison, Change::better);
  ASSERT_THAT(worse, SizeIs(1));
  ASSERT_THAT(better, SizeIs(1));
  EXPECT_EQ(worse[0].quantity->name, "layer_p50_us");
  EXPECT_NEAR(worse[0].quantity->worse_by().value(), 0.2, 1e-9);
  EXPECT_EQ(better[0].quantity->name, "tokens_per_s_per_rank");
  EXPECT_NEAR(better[0].quantity->a.median, 20'000, 1e-6);
  EXPECT_NEAR(better[0].quantity->worse_by().value(), -2.0 / 3, 1e-9);
  const std::string text = compare_text(comparison, std::nullopt);
  EXPECT_THAT(text, AllOf(HasSubstr("Regressions: 1\n"), HasSubstr("Improvements: 1\n"),
                          HasSubstr("+20.0% worse"), HasSubstr("+66.7% better")));
  const Json json = compare_json(comparison, std::nullopt);
  EXPECT_EQ(json["regressions"][0]["quantity"], "layer_p50_us");
  EXPECT_EQ(json["improvements"][0]["quantity"], "tokens_per_s_per_rank");
  const Json& layer = json["pairs"][0]["quantities"][0];
  EXPECT_NEAR(layer["a"]["values"][3].get<double>(), 99, 1e-9);
  EXPECT_NEAR(layer["b"]["high"].get<double>(), 121, 1e-9);
}

TEST_F(Runs, ARegressionFailsBeyondItsLimitOnly) {
  add(a, point(), {100, 101, 100, 99});
  add(b, point(), {106, 107, 106, 105});
  const Comparison comparison = compare_runs(a, b, {});
  // Time + 6 %, tokens - 5.66 %.
  EXPECT_EQ(check_regressions(comparison, {.share = 0.05}).shown, 2);
  EXPECT_TRUE(check_regressions(comparison, {.share = 0.05}).failed());
  EXPECT_EQ(check_regressions(comparison, {.share = 0.058}).shown, 1);
  EXPECT_EQ(check_regressions(comparison, {.share = 0.061}).shown, 0);
  EXPECT_FALSE(check_regressions(comparison, {.share = 0.061}).failed());
  // The other way round it is an improvement, which never fails.
  const Comparison back = compare_runs(b, a, {});
  EXPECT_THAT(outcomes_with(back, Change::better), SizeIs(2));
  EXPECT_THAT(outcomes_with(back, Change::worse), IsEmpty());
  EXPECT_FALSE(check_regressions(back, {.share = 0}).failed());
}

// Three and three part by chance in one of ten pairs.
TEST_F(Runs, TooFewRepeatsFailWhereTheyAreToldToOnly) {
  add(a, point(), {100, 101, 99});
  add(b, point(), {200, 201, 199});
  const Comparison comparison = compare_runs(a, b, {});
  EXPECT_THAT(outcomes_with(comparison, Change::too_few), SizeIs(2));
  EXPECT_THAT(outcomes_with(comparison, Change::worse), IsEmpty());
  const RegressionCheck allowed = check_regressions(comparison, {.share = 0.05});
  EXPECT_EQ(allowed.too_few, 2);
  EXPECT_FALSE(allowed.failed());
  EXPECT_THAT(compare_text(comparison, allowed),
              AllOf(HasSubstr("+100.0%?"), HasSubstr("2 more with too few repeats to say, which do "
                                                     "not fail")));
  EXPECT_TRUE(
      check_regressions(comparison, {.share = 0.05, .few_repeats = FewRepeats::fail}).failed());
  EXPECT_FALSE(
      check_regressions(compare_runs(b, a, {}), {.share = 0.05, .few_repeats = FewRepeats::fail})
          .failed());
}

TEST_F(Runs, StagesSayWhereTimeWent) {
  add(a, point(), {100, 101, 100, 99}, 10);
  add(b, point(), {170, 171, 170, 169}, 20);
  const Comparison comparison = compare_runs(a, b, {});
  const auto dispatch = quantity(comparison, "dispatch_transfer_p50_us");
  ASSERT_TRUE(dispatch.has_value());
  EXPECT_NEAR(dispatch->difference(), 10, 1e-6);
  EXPECT_EQ(dispatch->change, Change::worse);
  EXPECT_EQ(dispatch->rank, Rank::part);
  EXPECT_NEAR(quantity(comparison, "all_stages_p50_us")->difference(), 70, 1e-6);
  EXPECT_EQ(quantity(comparison, "all_stages_p50_us")->rank, Rank::part);
}

// Case C60: a point that one side lacks.
TEST_F(Runs, WhatHasNoPartnerIsListedWithItsReason) {
  add(a, point(2), {70, 71});
  add(a, point(4), {100});
  add(a, point(8), {100});
  add(b, point(4), {100});
  SweepPoint skipped = point(8);
  skipped.index = 7;
  b.points.push_back(make_point_record(testing::skipped_input(skipped, "4.1 GiB short")));
  const Comparison comparison = compare_runs(a, b, {});
  EXPECT_THAT(comparison.pairs, SizeIs(1));
  ASSERT_THAT(comparison.only_in_a, SizeIs(2));
  EXPECT_EQ(comparison.only_in_a[0].why, "no such point in B");
  EXPECT_EQ(comparison.only_in_a[0].repeats, 2);
  EXPECT_EQ(comparison.only_in_a[1].why, "B: skipped: 4.1 GiB short");
  ASSERT_THAT(comparison.only_in_b, SizeIs(1));
  EXPECT_EQ(comparison.only_in_b[0].why, "skipped: 4.1 GiB short");
  EXPECT_THAT(
      compare_text(comparison, std::nullopt),
      HasSubstr("  EP2 fixed_global 8 uniform contiguous pairwise plain, 2 repeats: no such "
                "point in B\n"));
}

TEST_F(Runs, NumbersOfPointsThatFailedAreNotCompared) {
  add(a, point(), {100});
  add(b, point(), {100});
  b.points[0]["state"] = "impossible";
  b.points[0]["reason"] = "above a ceiling";
  EXPECT_THAT(refusal(), HasSubstr("B: impossible: above a ceiling"));
}

// Case C60: other hardware, or none that anybody knows of.
TEST_F(Runs, OtherHardwareIsRefusedAndLabelledWhereAllowed) {
  add(a, point(), {100});
  add(b, point(), {100});
  b.run = facts("H200");
  EXPECT_EQ(refusal(),
            "A and B are not comparable: hardware: device 'H100' in A, 'H200' in B; --allow "
            "hardware compares them all the same and says so");
  const Comparison comparison =
      compare_runs(a, b, {.a = {}, .b = {}, .across = {}, .allow = {"hardware"}});
  EXPECT_THAT(compare_text(comparison, std::nullopt),
              HasSubstr("\nNOT COMPARABLE, allowed: hardware: device 'H100' in A, 'H200' in B\n"));
  EXPECT_EQ(compare_json(comparison, std::nullopt)["allowed"][0]["field"], "hardware");
  b.run = Json::object();
  EXPECT_THAT(refusal(), HasSubstr("device 'H100' in A, not said in B"));
  a.run = Json::object();
  EXPECT_THAT(refusal(), HasSubstr("device not said in A, not said in B"));
  a.run = b.run = facts();
  EXPECT_EQ(refusal(), "compared");
  b.run["provenance"]["cpu_model"] = "EPYC";
  EXPECT_THAT(refusal(), HasSubstr("hardware: CPU model 'Xeon' in A, 'EPYC' in B"));
}

// What was simulated is of the GPU that was declared; what was measured only has its peaks.
TEST_F(Runs, DeclaredHardwareMattersToSimulatedPoints) {
  SweepPoint one = point(), other = point();
  one.hardware.emplace().name = "h200";
  other.hardware.emplace().name = "b200";
  add(a, one, {100});
  add(b, other, {100});
  EXPECT_EQ(refusal(), "compared");
  a.points[0]["state"] = b.points[0]["state"] = "simulated";
  EXPECT_THAT(refusal(), HasSubstr("hardware: declared h200 in A, b200 in B"));
}

// Case C37: idle entry in one, back to back in the other.
TEST_F(Runs, OtherRegimesAreRefused) {
  add(a, point(), {80, 80, 80, 80});
  add(b, point(), {100, 100, 100, 100});
  for (Json& record : a.points) {
    for (const char* key : {"layer", "entry_skew_us"}) record[key] = nullptr;
    for (const char* key : {"layer_p50_us", "tokens_per_s_per_rank"}) {
      record["metrics"][key] = nullptr;
    }
  }
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("regime: EP4 fixed_global 8 uniform contiguous pairwise plain: "
                              "aligned in A, aligned and chained in B"),
                    HasSubstr("--allow regime")));
  const Comparison comparison =
      compare_runs(a, b, {.a = {}, .b = {}, .across = {}, .allow = {"regime"}});
  // Seven stages of 10 us; 8 tokens of four ranks in 70 us.
  EXPECT_EQ(quantity(comparison, "layer_p50_us")->regime, "aligned in A, chained in B");
  EXPECT_NEAR(quantity(comparison, "layer_p50_us")->a.median, 70, 1e-6);
  EXPECT_NEAR(quantity(comparison, "tokens_per_s_per_rank")->a.median, 8 / 70e-6 / 4, 1e-3);
  EXPECT_THAT(compare_text(comparison, std::nullopt), HasSubstr("NOT COMPARABLE, allowed: regime"));
  // Stages of two such records are of one regime, and then are what there is to judge by.
  const Comparison stages = compare_runs(a, a, {});
  EXPECT_EQ(quantity(stages, "layer_p50_us"), std::nullopt);
  EXPECT_EQ(quantity(stages, "all_stages_p50_us")->rank, Rank::outcome);
}

TEST_F(Runs, ModesAreNotComparedUnlessAllowed) {
  add(a, testing::sample_point(4, 8), {100});
  add(b, testing::sample_point(4, 2, ConcurrencyMode::fixed_per_rank), {100});
  EXPECT_THAT(refusal(), HasSubstr("concurrency: fixed_global in A, fixed_per_rank in B"));
  // By the same 8 tokens of the group then.
  const Comparison comparison =
      compare_runs(a, b, {.a = {}, .b = {}, .across = {}, .allow = {"concurrency"}});
  EXPECT_THAT(comparison.pairs, SizeIs(1));
  EXPECT_EQ(comparison.allowed.at(0).field, "concurrency");
  // Where they share a mode, the other one is without partner.
  add(b, testing::sample_point(4, 8), {100});
  const Comparison shared = compare_runs(a, b, {});
  EXPECT_THAT(shared.pairs, SizeIs(1));
  EXPECT_THAT(shared.only_in_b, SizeIs(1));
  EXPECT_THAT(shared.allowed, IsEmpty());
}

TEST_F(Runs, DtypeAndModelAreRefusedUnlessTheyAreWhatIsCompared) {
  SweepPoint other = point();
  other.dtype = DType::fp32;
  other.model.ffn_dim = 16;
  add(a, point(), {100});
  add(b, other, {100});
  EXPECT_THAT(refusal(), AllOf(HasSubstr("dtype: bf16 in A, fp32 in B"),
                               HasSubstr("model: tiny with /ffn_dim 8 -> 16"),
                               HasSubstr("--allow dtype --allow model")));
  const CompareRequest chosen = {
      .a = {{"dtype", "bf16"}}, .b = {{"dtype", "fp32"}}, .across = {"model"}, .allow = {}};
  EXPECT_THAT(compare_runs(a, b, chosen).allowed, IsEmpty());
  const CompareRequest allowed = {.a = {}, .b = {}, .across = {}, .allow = {"dtype", "model"}};
  EXPECT_THAT(compare_runs(a, b, allowed).allowed, SizeIs(2));
}

TEST_F(Runs, SimulatedIsNotMeasured) {
  add(a, point(), {100});
  add(b, point(), {100});
  b.points[0]["state"] = "simulated";
  EXPECT_THAT(refusal(), HasSubstr("state: measured in A, simulated in B"));
  EXPECT_EQ(
      compare_runs(a, b, {.a = {}, .b = {}, .across = {}, .allow = {"state"}}).allowed.at(0).field,
      "state");
}

TEST_F(Runs, TheSameAxesMustHaveDrawnTheSameRouting) {
  add(a, point(), {100});
  add(b, point(), {100});
  b.points[0]["routing_checksum"] = "1";
  EXPECT_THAT(refusal(), HasSubstr("routing_checksum: EP4"));
  // Of another load or seed it is another one by right.
  b.points[0]["point"]["seed"] = 2;
  const Comparison comparison =
      compare_runs(a, b, {.a = {}, .b = {}, .across = {"seed"}, .allow = {}});
  EXPECT_THAT(comparison.allowed, IsEmpty());
}

TEST_F(Runs, AllThatDiffersIsOneMessage) {
  add(a, point(), {100});
  add(b, point(), {100});
  b.run = facts("H200");
  b.points[0]["state"] = "simulated";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("hardware: device"), HasSubstr("state: measured"),
                               HasSubstr("--allow hardware --allow state")));
  EXPECT_THAT(refusal({.a = {}, .b = {}, .across = {}, .allow = {"state"}}),
              AllOf(HasSubstr("hardware"), Not(HasSubstr("state"))));
}

TEST_F(Runs, WhatIsChosenDifferentlyIsNotMatchedBy) {
  SweepPoint loop = point(), grouped = point();
  loop.grouped_gemm = "loop";
  add(a, loop, {100});
  add(a, grouped, {50});
  const CompareRequest request = {
      .a = {{"grouped_gemm", "loop"}}, .b = {{"grouped_gemm", "plain"}}, .across = {}, .allow = {}};
  const Comparison comparison = compare_runs(a, a, request);
  ASSERT_THAT(comparison.pairs, SizeIs(1));
  EXPECT_EQ(quantity(comparison, "layer_p50_us")->relative, -0.5);
  EXPECT_THAT(compare_text(comparison, std::nullopt),
              AllOf(HasSubstr("# A: a with grouped_gemm loop\n"),
                    HasSubstr("\ngrouped_gemm loop -> plain\n")));
  EXPECT_EQ(compare_json(comparison, std::nullopt)["pairs"][0]["b"]["axes"],
            Json({{"grouped_gemm", "plain"}}));
}

TEST_F(Runs, SeveralPartnersAreAnErrorThatNamesTheAxis) {
  SweepPoint other = point();
  other.exchange_unit = ExchangeUnit::rank;
  other.placement = "eplb";
  other.redundant_slots = 2;
  add(a, point(), {100});
  add(b, point(), {100});
  add(b, other, {100});
  b = {.dir = "b", .run = facts(), .points = b.points};
  const CompareRequest request = {
      .a = {}, .b = {}, .across = {"placement", "exchange_unit"}, .allow = {}};
  EXPECT_THAT(
      refusal(request),
      AllOf(HasSubstr("B has more than one point for one of the other side"),
            HasSubstr("exchange_unit assignment and rank; choose with --b exchange_unit=")));
  // Redundant slots follow from the placement.
  const CompareRequest one = {
      .a = {}, .b = {{"exchange_unit", "rank"}}, .across = {"placement"}, .allow = {}};
  EXPECT_THAT(compare_runs(a, b, one).pairs, SizeIs(1));
}

TEST_F(Runs, NoPartnerAtAllNamesTheAxesThatAreApart) {
  SweepPoint other = point();
  other.seed = 2;
  add(a, point(), {100});
  add(b, other, {100});
  EXPECT_EQ(refusal(),
            "no point of A has a partner in B: they have no value in common of seed (1 -> 2); "
            "choose with --a and --b KEY=VALUE, or let them differ with --across KEY");
  EXPECT_THAT(compare_runs(a, b, {.a = {}, .b = {}, .across = {"seed"}, .allow = {}}).pairs,
              SizeIs(1));
}

// An older build's records may lack an axis that was added since.
TEST_F(Runs, AnAxisThatOneSideDoesNotHaveIsNotMatchedBy) {
  add(a, point(), {100});
  add(b, point(), {100});
  a.points[0]["point"].erase("launch");
  const Comparison comparison = compare_runs(a, b, {});
  EXPECT_THAT(comparison.unknown_axes, ElementsAre("launch"));
  EXPECT_THAT(compare_text(comparison, std::nullopt),
              HasSubstr("since one side's records do not have it: launch\n"));
}

TEST_F(Runs, NamesThatDoNotExistAreOneLine) {
  add(a, point(), {100});
  add(b, point(), {100});
  const auto with_a = [](const std::string& axis, const std::string& value) {
    return CompareRequest{.a = {{axis, value}}, .b = {}, .across = {}, .allow = {}};
  };
  EXPECT_THAT(refusal(with_a("ep_siz", "4")),
              HasSubstr("points of a have no axis 'ep_siz'; nearest: 'ep_size'"));
  EXPECT_THAT(refusal(with_a("index", "0")), HasSubstr("no axis 'index'"));
  EXPECT_THAT(refusal(with_a("grouped_gemm", "plan")),
              HasSubstr("A grouped_gemm=plan: leaves no point of a; grouped_gemm is plain; "
                        "nearest: 'plain'"));
  CompareRequest twice = with_a("ep_size", "4");
  twice.a.push_back({"ep_size", "4"});
  EXPECT_THAT(refusal(twice), HasSubstr("A: ep_size is chosen twice"));
  EXPECT_THAT(refusal({.a = {}, .b = {}, .across = {"topologi"}, .allow = {}}),
              HasSubstr("nearest: 'topology'"));
  EXPECT_THAT(refusal({.a = {}, .b = {}, .across = {}, .allow = {"regimes"}}),
              HasSubstr("nearest: 'regime'"));
  EXPECT_THAT(refusal({.a = {}, .b = {}, .across = {}, .allow = {"schema_version"}}),
              HasSubstr("another major"));
  b.points.push_back(b.points[0]);
  EXPECT_THAT(refusal(), HasSubstr("point 0 stands there twice"));
  b.points[1]["point"] = 3;
  EXPECT_THAT(refusal(), HasSubstr("b/points.jsonl: point 0: 'point' is no object"));
  b.points.clear();
  EXPECT_THAT(refusal(), HasSubstr("the run has no points"));
}

TEST_F(Runs, WhatRunsDifferInIsSaid) {
  add(a, point(), {100});
  add(b, point(), {100});
  a.run["provenance"]["git_revision"] = "abc";
  b.run["provenance"]["git_revision"] = "def";
  EXPECT_THAT(compare_text(compare_runs(a, b, {}), std::nullopt),
              HasSubstr("differs: git_revision: \"abc\" in A, \"def\" in B\n"));
}

// The time's is the lower one of 200 and 300 us, so the rate's is the higher one.
TEST_F(Runs, TimeAndRateAreOfOneRepeat) {
  add(a, point(), {100, 200, 300, 400});
  const Comparison comparison = compare_runs(a, a, {});
  EXPECT_NEAR(quantity(comparison, "layer_p50_us")->a.median, 200, 1e-6);
  EXPECT_NEAR(quantity(comparison, "tokens_per_s_per_rank")->a.median, 8 / 200e-6 / 4, 1e-6);
}

// Whatever order they ran in: by load, then by EP size.
TEST_F(Runs, RowsStandByLoadAndEpSize) {
  add(a, point(4, 16), {100});
  add(a, point(4, 8), {100});
  add(a, point(2, 8), {100, 100});
  add(b, point(2, 8), {100});
  add(b, point(4, 16), {100});
  add(b, point(4, 8), {100});
  const std::string text = compare_text(compare_runs(a, b, {}), std::nullopt);
  const std::size_t first = text.find("\n   2          8       1      2+1  ");
  const std::size_t second = text.find("\n   4          8       1        1  ");
  const std::size_t third = text.find("\n   4         16       1        1  ");
  EXPECT_TRUE(first < second && second < third && third != std::string::npos) << text;
}

// A regression of four groups against one is also one of what ran beside them.
TEST_F(Runs, GroupsSideBySideAreSaid) {
  add(a, point(), {100});
  add(b, point(), {100});
  b.points[0]["num_groups"] = 4;
  EXPECT_THAT(compare_text(compare_runs(a, b, {}), std::nullopt), HasSubstr("  1 -> 4  "));
}

// Two ways to add up the same microseconds.
TEST_F(Runs, RoundingIsNoDifference) {
  add(a, point(), {100, 100, 100, 100});
  add(b, point(), {100 + 1e-11, 100 + 1e-11, 100 + 1e-11, 100 + 1e-11});
  EXPECT_EQ(quantity(compare_runs(a, b, {}), "layer_p50_us")->change, Change::nothing);
}

// A stage that took no time has no share to grow by.
TEST_F(Runs, NothingIsDividedByZero) {
  add(a, point(), {100, 100, 100, 100}, 0);
  add(b, point(), {100, 100, 100, 100}, 10);
  const auto router = quantity(compare_runs(a, b, {}), "router_p50_us");
  EXPECT_EQ(router->relative, std::nullopt);
  EXPECT_EQ(router->change, Change::worse);
  const auto same = quantity(compare_runs(a, a, {}), "router_p50_us");
  EXPECT_EQ(same->relative, 0);
  EXPECT_EQ(
      compare_json(compare_runs(a, b, {}), std::nullopt)["pairs"][0]["quantities"][3]["relative"],
      nullptr);
}

TEST(AxisChoice, IsKeyAndValue) {
  EXPECT_EQ(parse_axis_choice("--a", "routing=zipf(zipf_alpha=1.2)").value, "zipf(zipf_alpha=1.2)");
  for (const char* text : {"", "ep_size", "=4", "ep_size="}) {
    EXPECT_THROW(parse_axis_choice("--a", text), ConfigError) << text;
  }
}

TEST(RegressionLimit, IsAPercentage) {
  EXPECT_DOUBLE_EQ(parse_regression_limit("regression:5%", "allow").share, 0.05);
  EXPECT_DOUBLE_EQ(parse_regression_limit("regression:0%", "allow").share, 0);
  EXPECT_EQ(parse_regression_limit("regression:2.5%", "fail").few_repeats, FewRepeats::fail);
  for (const char* text :
       {"5%", "regression", "regression:", "regression:%", "regression:5", "regression:x%",
        "regression:-1%", "regression:nan%", "regression:5%%"}) {
    EXPECT_THROW(parse_regression_limit(text, "allow"), ConfigError) << text;
  }
  EXPECT_THROW(parse_regression_limit("regression:5%", "alow"), ConfigError);
}

}  // namespace
}  // namespace epsweep
