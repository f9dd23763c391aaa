#include "plan/sweep_spec.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "plan/plan.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

SpecSources sources() {
  return {
      .models_dir = EPSWEEP_SOURCE_DIR "/configs/models",
      .catalogs = {
          .distributions = {{"uniform", "", {}},
                            {"zipf",
                             "",
                             {{.name = "zipf_alpha",
                               .kind = ParamSpec::Kind::number,
                               .min = 0,
                               .max = 10,
                               .default_value = 1,
                               .help = ""},
                              {.name = "skip",
                               .kind = ParamSpec::Kind::count,
                               .min = 0,
                               .max = 9,
                               .help = "",
                               .presence = ParamSpec::Presence::when_said}},
                             "zipf_alpha"},
                            {"k_hot",
                             "",
                             {{.name = "num_hot",
                               .kind = ParamSpec::Kind::count,
                               .min = 1,
                               .max = 1000,
                               .default_value = 4,
                               .help = ""},
                              {.name = "hot_fraction",
                               .kind = ParamSpec::Kind::number,
                               .min = 0,
                               .max = 1,
                               .default_value = 0.5,
                               .help = ""}}},
                            {"recorded",
                             "",
                             {{.name = "counts_file", .kind = ParamSpec::Kind::file, .help = ""}}}},
          .placements = {{"contiguous", SlotRule::one_per_expert},
                         {"eplb", SlotRule::equal_per_rank},
                         {"round_robin", SlotRule::one_per_expert}},
          .transports = {"alltoallv", "pairwise"},
          .grouped_gemms = {"loop", "onednn", "reference"},
          .default_transport = "pairwise",
          .default_grouped_gemm = "onednn"}};
}

// Every required key, one per line from line 1 on.
const std::string kMinimal =
    "name: t\n"
    "model: {name: m, hidden_dim: 8, ffn_dim: 4, num_experts: 8, top_k: 2, num_moe_layers: 1}\n"
    "ep_sizes: [1, 2]\n"
    "concurrency: {fixed_global: [16]}\n"
    "routing: uniform\n";

SweepSpec read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return read_sweep_spec(text, "dir/x.yaml", overrides, sources());
}

std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read(text, overrides);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SweepSpec, FillsInDefaults) {
  const SweepSpec spec = read(kMinimal);
  EXPECT_THAT(spec.ep_sizes, ElementsAre(1, 2));
  EXPECT_THAT(spec.transport, ElementsAre("pairwise"));
  EXPECT_THAT(spec.grouped_gemm, ElementsAre("onednn"));
  EXPECT_EQ(spec.dtype.front(), DType::bf16);
  EXPECT_EQ(spec.groups, Groups::fill);
  EXPECT_EQ(spec.weight_cache, WeightCache::flush);
  EXPECT_EQ(spec.ceilings, Ceilings::measure);
  EXPECT_EQ(spec.repeats, 1);
}

TEST(SweepSpec, ReadsEveryAxis) {
  const SweepSpec spec = read(
      "name: t\n"
      "model: {base: olmoe-1b-7b, name: small, hidden_dim: 64, expert_io_dim: 64, ffn_dim: 32}\n"
      "ep_sizes: 4\n"
      "concurrency:\n"
      "  fixed_global: {from: 8, to: 40, factor: 2}\n"
      "  fixed_per_rank: [1, 2]\n"
      "  tokens_per_rank: [3, 0, 1, 2]\n"
      "routing: [uniform, {distribution: k_hot, num_hot: 2}, "
      "{distribution: recorded, counts_file: " EPSWEEP_SOURCE_DIR
      "/configs/routing/olmoe_like_counts.json}]\n"
      "placement: [contiguous, round_robin]\n"
      "dtype: [bf16, fp32]\nmapping: [packed, spread]\ngroups: single\nweight_cache: warm\n"
      "ceilings: skip\n"
      "allow_empty_ranks: true\nlayers: 3\nwarmup: 0\niterations: 7\nrepeats: 2\nseed: 9\nstep: "
      "4\n");
  EXPECT_EQ(spec.model.num_experts, 64);
  EXPECT_EQ(spec.model.hidden_dim, 64);
  EXPECT_THAT(spec.concurrency, SizeIs(6));
  EXPECT_EQ(spec.concurrency[2].tokens, 32);
  EXPECT_EQ(spec.concurrency[3].mode, ConcurrencyMode::fixed_per_rank);
  EXPECT_THAT(spec.concurrency[5].tokens_per_rank, ElementsAre(3, 0, 1, 2));
  EXPECT_EQ(spec.routing[1].label(), "k_hot(num_hot=2 hot_fraction=0.5)");
  EXPECT_EQ(spec.routing[2].file, EPSWEEP_SOURCE_DIR "/configs/routing/olmoe_like_counts.json");
  EXPECT_EQ(spec.routing[2].file_checksum.size(), 16U);
  EXPECT_EQ(spec.seed, 9U);
  EXPECT_EQ(spec.ceilings, Ceilings::skip);
  EXPECT_EQ(make_plan(spec).points.size(), 2U * 2 * 2 * 6 * 3 * 2);
}

TEST(SweepSpec, EchoesEveryEffectiveValue) {
  const Json json = sweep_spec_json(read(kMinimal, {"seed=8"}));
  EXPECT_EQ(json["seed"], 8);
  EXPECT_EQ(json["ceilings"], "measure");
  EXPECT_EQ(json["transport"][0], "pairwise");
  EXPECT_EQ(json["concurrency"]["fixed_global"][0], 16);
  EXPECT_EQ(json["model"]["num_experts"], 8);
}

TEST(SweepSpec, IterationsMayGoOnToAPrecision) {
  EXPECT_FALSE(read(kMinimal).iteration_target.has_value());
  const SweepSpec spec = read(
      kMinimal + "iterations: 30\niteration_target: {precision: 0.01, most: 500, limit_s: 2.5}\n");
  ASSERT_TRUE(spec.iteration_target.has_value());
  const Json json = point_axes_json(make_plan(spec).points.at(0));
  EXPECT_EQ(json["iterations"], 30);
  EXPECT_EQ(json["iteration_target"],
            Json::parse(R"({"precision": 0.01, "most": 500, "limit_s": 2.5})"));
  EXPECT_THAT(error_of(kMinimal + "iteration_target: {most: 50}\n"),
              HasSubstr("the key 'precision' is missing"));
  EXPECT_THAT(error_of(kMinimal + "iteration_target: {precision: 0}\n"), HasSubstr("precision"));
  EXPECT_THAT(error_of(kMinimal + "iterations: 30\niteration_target: {precision: 0.1, most: 5}\n"),
              HasSubstr("most: 5 is outside 30"));
}

TEST(SweepSpec, IterationsSeeEveryStep) {
  EXPECT_EQ(read(kMinimal + "vary_routing: 4\niterations: 4\n").vary_routing, 4);
  EXPECT_EQ(read(kMinimal).vary_routing, 1);
  EXPECT_THAT(error_of(kMinimal + "vary_routing: 5\niterations: 4\n"),
              HasSubstr("vary_routing: 4 iterations do not come to 5 steps"));
}

TEST(SweepSpec, ExchangeUnitIsAnAxis) {
  EXPECT_THAT(read(kMinimal).exchange_unit, ElementsAre(ExchangeUnit::assignment));
  const SweepSpec spec = read(kMinimal + "exchange_unit: [rank, assignment]\n");
  EXPECT_EQ(sweep_spec_json(spec)["exchange_unit"], Json({"rank", "assignment"}));
  const Plan plan = make_plan(spec);
  ASSERT_EQ(plan.points.size(), 4U);
  EXPECT_EQ(plan.points[0].exchange_unit, ExchangeUnit::rank);
  EXPECT_EQ(plan.points[1].exchange_unit, ExchangeUnit::assignment);
  EXPECT_EQ(plan.points[1].index, 1);
  EXPECT_EQ(point_axes_json(plan.points[0])["exchange_unit"], "rank");
  EXPECT_THAT(point_label(plan.points[0]), HasSubstr("unit rank"));
}

TEST(SweepSpec, UnknownExchangeUnitsAreRefused) {
  EXPECT_THAT(error_of(kMinimal + "exchange_unit: ranks\n"), HasSubstr("(nearest: 'rank')"));
  EXPECT_THAT(error_of(kMinimal + "exchange_unit: []\n"), HasSubstr("exchange_unit"));
  EXPECT_THAT(error_of(kMinimal + "exchange_unit: [rank, rank]\n"), HasSubstr("listed twice"));
  EXPECT_THAT(error_of(kMinimal + "exchange_units: rank\n"), HasSubstr("exchange_unit"));
}

TEST(SweepSpec, LaunchIsAnAxisAndDirectUnlessSaid) {
  EXPECT_THAT(read(kMinimal).launch, ElementsAre(Launch::direct));
  const SweepSpec spec = read(kMinimal + "launch: [direct, graph]\n");
  EXPECT_EQ(sweep_spec_json(spec)["launch"], Json({"direct", "graph"}));
  const Plan plan = make_plan(spec);
  ASSERT_EQ(plan.points.size(), 4U);
  EXPECT_EQ(point_axes_json(plan.points[1])["launch"], "graph");
  EXPECT_THAT(point_label(plan.points[1]), HasSubstr("launch graph"));
  EXPECT_THAT(error_of(kMinimal + "launch: graphs\n"), HasSubstr("(nearest: 'graph')"));
}

TEST(SweepSpec, CapacityFactorIsAtLeastTheMean) {
  EXPECT_EQ(read(kMinimal).capacity_factor, std::nullopt);
  const SweepSpec spec = read(kMinimal + "capacity_factor: 1.25\n");
  EXPECT_EQ(sweep_spec_json(spec)["capacity_factor"], 1.25);
  EXPECT_EQ(make_plan(spec).points[0].capacity_factor, 1.25);
  EXPECT_THAT(error_of(kMinimal + "capacity_factor: 0.5\n"), HasSubstr("capacity_factor"));
}

TEST(SweepSpec, RedundantSlotsBelongToPlacementsWithReplicas) {
  const std::string axes = kMinimal + "placement: [contiguous, eplb]\nredundant_slots: [0, 4]\n";
  const SweepSpec spec = read(axes);
  std::vector<std::string> choices;
  for (const PlacementChoice& choice : spec.placement) {
    choices.push_back(choice.name + "+" + std::to_string(choice.redundant_slots));
  }
  EXPECT_THAT(choices, ElementsAre("contiguous+0", "eplb+0", "eplb+4"));
  EXPECT_EQ(sweep_spec_json(spec)["placement"], Json({"contiguous", "eplb"}));
  EXPECT_EQ(sweep_spec_json(spec)["redundant_slots"], Json({0, 4}));
  const Plan plan = make_plan(spec);
  EXPECT_THAT(plan.points, SizeIs(2 * 3));
  EXPECT_EQ(plan.points[2].redundant_slots, 4);

  EXPECT_EQ(read(kMinimal + "placement: eplb\nredundant_slots: 4\n").placement[0].redundant_slots,
            4);
  EXPECT_THAT(error_of(kMinimal + "redundant_slots: 4\n"),
              AllOf(HasSubstr("dir/x.yaml:6: redundant_slots"), HasSubstr("contiguous has no"),
                    HasSubstr("those that have: eplb")));
  EXPECT_THAT(error_of(kMinimal + "placement: eplb\nredundant_slots: [-1]\n"),
              HasSubstr("redundant_slots.0: -1 is outside"));
  EXPECT_THAT(error_of(kMinimal + "placement: eplb\nredundant_slots: [4, 4]\n"),
              HasSubstr("redundant_slots: 4 is listed twice"));
  EXPECT_THAT(error_of(kMinimal + "placement: eplb\nredundant_slots: 1.5\n"),
              HasSubstr("expected a whole number"));
}

// Case C14: the command line wins over the file and the default.
TEST(SweepSpec, OverridesWin) {
  EXPECT_EQ(read(kMinimal + "seed: 7\n", {"seed=8"}).seed, 8U);
  EXPECT_THAT(read(kMinimal, {"ep_sizes=[4]", "model.num_experts=16"}).ep_sizes, ElementsAre(4));
  EXPECT_THAT(error_of(kMinimal, {"sed=8"}), HasSubstr("--set:1: sed: unknown key"));
}

// A recording counts by what is in it, not by where it lies.
TEST(SweepSpec, RoutingFilesCountByTheirContent) {
  const auto fingerprint = [](const std::string& folder, const std::string& content) {
    const std::filesystem::path dir = std::filesystem::path(::testing::TempDir()) / folder;
    std::filesystem::create_directories(dir);
    std::ofstream(dir / "counts.json") << content;
    const std::string file = (dir / "counts.json").string();
    return make_plan(
               read(kMinimal, {"routing={distribution: recorded, counts_file: " + file + "}"}))
        .fingerprint;
  };
  EXPECT_EQ(fingerprint("epsweep_a", "one"), fingerprint("epsweep_b", "one"));
  EXPECT_NE(fingerprint("epsweep_a", "one"), fingerprint("epsweep_a", "two"));
}

// Case C47: line, dotted path and the nearest key.
TEST(SweepSpec, KeyErrorsSayWhereAndWhatWasMeant) {
  EXPECT_THAT(
      error_of(kMinimal + "zipf_aplha: 1\n"),
      AllOf(HasSubstr("dir/x.yaml:6: zipf_aplha: unknown key"), HasSubstr("'routing.zipf_alpha'")));
  EXPECT_THAT(error_of("name: t\nrouting: {distribution: k_hot, hot_fracton: 0.5}\n" +
                       kMinimal.substr(kMinimal.find("model"), kMinimal.find("routing") - 8)),
              AllOf(HasSubstr("dir/x.yaml:2: routing.hot_fracton"), HasSubstr("'hot_fraction'")));
  EXPECT_THAT(
      error_of(kMinimal + "fixed_per_rank: [1]\n"),
      AllOf(HasSubstr("dir/x.yaml:6: fixed_per_rank"), HasSubstr("belongs under 'concurrency'")));
  EXPECT_THAT(error_of(kMinimal + "qqqqqqqqqqqqqqq: {a: 1}\n"),
              AllOf(HasSubstr("dir/x.yaml:6: qqqqqqqqqqqqqqq: unknown key"),
                    HasSubstr("valid keys: name,")));
}

TEST(SweepSpec, ValueErrorsNameThePath) {
  EXPECT_THAT(error_of(kMinimal + "layers: 1.5\n"),
              HasSubstr("dir/x.yaml:6: layers: expected a whole number, found '1.5'"));
  EXPECT_THAT(error_of(kMinimal + "iterations: 0\n"), HasSubstr("iterations: 0 is outside 1"));
  EXPECT_THAT(error_of(kMinimal + "transport: pairwse\n"), HasSubstr("(nearest: 'pairwise')"));
  EXPECT_THAT(error_of(kMinimal + "dtype: []\n"), HasSubstr("dtype: the list is empty"));
  EXPECT_THAT(error_of(kMinimal + "seed: -1\n"), HasSubstr("seed: expected a whole number"));
  EXPECT_THAT(error_of(kMinimal + "groups: [fill]\n"), HasSubstr("groups: expected a word"));
  EXPECT_THAT(error_of(kMinimal, {"ep_sizes=[8, 8]"}), HasSubstr("ep_sizes: 8 is listed twice"));
  EXPECT_THAT(error_of(kMinimal, {"ep_sizes=[0]"}), HasSubstr("ep_sizes.0: 0 is outside"));
  EXPECT_THAT(error_of(kMinimal, {"concurrency={}"}), HasSubstr("names no load"));
  EXPECT_THAT(error_of(kMinimal, {"concurrency.fixed_global={from: 8, to: 4, factor: 2}"}),
              HasSubstr("concurrency.fixed_global.to"));
  EXPECT_THAT(error_of(kMinimal, {"routing={distribution: zipf, zipf_alpha: 11}"}),
              HasSubstr("routing.zipf_alpha: 11 is outside 0 to 10"));
  EXPECT_THAT(error_of(kMinimal, {"routing=recorded"}), HasSubstr("needs the key 'counts_file'"));
  EXPECT_THAT(error_of(kMinimal, {"routing={distribution: recorded, counts_file: no.json}"}),
              HasSubstr("dir/no.json: cannot be read"));
  EXPECT_THAT(error_of(kMinimal, {"model=olmoe-1b-7"}), HasSubstr("(nearest: 'olmoe-1b-7b')"));
  EXPECT_THAT(error_of("name: t\n"), HasSubstr("the key 'model' is missing"));
  EXPECT_THAT(error_of(kMinimal, {"name=a/b"}), HasSubstr("name: only letters"));
  EXPECT_THAT(error_of(kMinimal, {"name=.."}), HasSubstr("name: only letters"));
  EXPECT_THAT(error_of(""), HasSubstr("expected a map"));
}

// Case C11: top_k edges.
TEST(SweepSpec, TopKMustBeBetweenOneAndTheExperts) {
  for (const char* bad : {"model.top_k=9", "model.top_k=0", "model.top_k=-1"}) {
    EXPECT_THAT(error_of(kMinimal, {bad}), HasSubstr("top_k")) << bad;
  }
  EXPECT_EQ(read(kMinimal, {"model.top_k=8"}).model.top_k, 8);
  EXPECT_EQ(read(kMinimal, {"model.top_k=1"}).model.top_k, 1);
}

std::string routing_text(const std::string& routing) {
  return kMinimal.substr(0, kMinimal.find("routing:")) + "routing: " + routing + "\n";
}

TEST(SweepSpecRouting, MaxOverMeanStandsForTheSkewParameter) {
  const SweepSpec spec = read(routing_text("{distribution: zipf, max_over_mean: 3.5}"));
  EXPECT_EQ(spec.routing[0].label(), "zipf(max_over_mean=3.5)");
  EXPECT_EQ(routing_json(spec.routing[0]).dump(), R"({"distribution":"zipf","max_over_mean":3.5})");
  EXPECT_THAT(
      error_of(routing_text("{distribution: zipf, max_over_mean: 3, zipf_alpha: 1}")),
      AllOf(HasSubstr("x.yaml:5: routing"), HasSubstr("both zipf_alpha and max_over_mean")));
  EXPECT_THAT(error_of(routing_text("{distribution: zipf, max_over_mean: 0.9}")),
              HasSubstr("routing.max_over_mean: 0.9 is outside 1 to"));
  // Distributions without a skew parameter do not know the key.
  EXPECT_THAT(error_of(routing_text("{distribution: k_hot, max_over_mean: 3}")),
              HasSubstr("routing.max_over_mean: unknown key"));
  EXPECT_THAT(error_of(kMinimal + "max_over_mean: 3\n"), HasSubstr("it belongs under 'routing'"));
}

TEST(SweepSpecRouting, ParametersThatNeedNotBeSaidHaveNoValueThen) {
  EXPECT_EQ(read(routing_text("zipf")).routing[0].label(), "zipf(zipf_alpha=1)");
  const Routing said = read(routing_text("{distribution: zipf, skip: 0}")).routing[0];
  EXPECT_EQ(said.label(), "zipf(zipf_alpha=1 skip=0)");
  EXPECT_EQ(said.param_or("skip", 5), 0);
  EXPECT_EQ(read(kMinimal).routing[0].param_or("skip", 5), 5);
}

TEST(SweepSpecRouting, AFileMayBeAFolder) {
  const std::filesystem::path folder = ::testing::TempDir() + "epsweep_spec_folder";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a") << "one";
  const auto checksum = [&] {
    return read(routing_text(
                    fmt::format("{{distribution: recorded, counts_file: {}}}", folder.string())))
        .routing[0]
        .file_checksum;
  };
  const std::string before = checksum();
  std::ofstream(folder / "a") << "two";
  EXPECT_NE(checksum(), before);
}

}  // namespace
}  // namespace epsweep
