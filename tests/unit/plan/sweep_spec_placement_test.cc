// The forms of `placement` in an experiment.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/sweep_spec.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

SpecSources sources() {
  return {.models_dir = EPSWEEP_SOURCE_DIR "/configs/models",
          .catalogs = {.distributions = {{"uniform", "", {}},
                                         {"zipf",
                                          "",
                                          {{.name = "zipf_alpha",
                                            .kind = ParamSpec::Kind::number,
                                            .min = 0,
                                            .max = 10,
                                            .default_value = 1,
                                            .help = ""}}}},
                       .placements = {{"contiguous", SlotRule::one_per_expert, FittedTo::nothing},
                                      {"eplb", SlotRule::equal_per_rank, FittedTo::rows},
                                      {"map", SlotRule::listed, FittedTo::nothing}},
                       .transports = {"pairwise"},
                       .grouped_gemms = {"onednn"},
                       .default_transport = "pairwise",
                       .default_grouped_gemm = "onednn"}};
}

// `lines` stand from line 6 on.
SweepSpec read(const std::string& lines) {
  return read_sweep_spec(
      "name: t\n"
      "model: {name: m, hidden_dim: 8, ffn_dim: 4, num_experts: 4, top_k: 2, num_moe_layers: 1}\n"
      "ep_sizes: [2]\n"
      "concurrency: {fixed_global: [16]}\n"
      "routing: uniform\n" +
          lines,
      testing::TempDir() + "x.yaml", {}, sources());
}

std::string error_of(const std::string& lines) {
  try {
    read(lines);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// Beside the experiment.
void write_map(const std::string& name, const std::string& slots, const std::string& more = "") {
  std::ofstream(testing::TempDir() + name)
      << "{num_slots: 4, initial_global_assignments: {0: " << slots << "}" << more << "}";
}

std::vector<std::string> labels(const SweepSpec& spec) {
  std::vector<std::string> result;
  for (const SweepPoint& point : make_plan(spec).points) result.push_back(placement_label(point));
  return result;
}

TEST(PlacementForms, a_list_with_redundant_slots_beside_or_inside) {
  EXPECT_THAT(labels(read("placement: [contiguous, eplb]\nredundant_slots: [0, 4]\n")),
              ElementsAre("contiguous", "eplb", "eplb+4"));
  EXPECT_THAT(labels(read("placement: {policies: [contiguous, eplb], redundant_slots: [0, 4]}\n")),
              ElementsAre("contiguous", "eplb", "eplb+4"));
  EXPECT_THAT(labels(read("placement: {policies: eplb}\nredundant_slots: 4\n")),
              ElementsAre("eplb+4"));
  EXPECT_THAT(error_of("placement: {policies: eplb, redundant_slots: 4}\nredundant_slots: 4\n"),
              AllOf(HasSubstr("x.yaml:7: redundant_slots"), HasSubstr("given too, on line 6"),
                    HasSubstr("one of both")));
}

TEST(PlacementForms, mistakes_name_what_would_do) {
  EXPECT_THAT(error_of("placement: {policy: eplb, fit_on: {step: 1}}\n"),
              HasSubstr("placement.fit_on: it goes beside 'policies'"));
  EXPECT_THAT(error_of("placement: {policies: eplb, fit_onn: {step: 1}}\n"),
              HasSubstr("nearest valid key: 'fit_on'"));
  EXPECT_THAT(error_of("placement: {fit_on: {step: 1}}\n"), HasSubstr("'policies' is missing"));
  EXPECT_THAT(error_of("placement: eplbb\n"), HasSubstr("nearest: 'eplb'"));
  EXPECT_THAT(error_of("placement: [eplb, {policy: eplb}]\n"), HasSubstr("eplb is listed twice"));
  EXPECT_THAT(error_of("placement: {policies: [contiguous], redundant_slots: 4}\n"),
              AllOf(HasSubstr("contiguous has no replicas"), HasSubstr("eplb")));
}

TEST(FitOn, belongs_to_fitted_placements_only) {
  const Plan plan =
      make_plan(read("placement: {policies: [contiguous, eplb], fit_on: {step: 1, tokens: 64}, "
                     "judge_on: {distribution: zipf, zipf_alpha: 2, seed: 5}}\n"));
  ASSERT_THAT(plan.points, SizeIs(2));
  EXPECT_EQ(plan.points[0].fit_on.has_value(), false);
  const TraceChoice& fit_on = plan.points[1].fit_on.value();
  EXPECT_EQ(fit_on.step, 1);
  EXPECT_EQ(fit_on.tokens, 64);
  EXPECT_EQ(fit_on.seed, std::nullopt);
  EXPECT_EQ(fit_on.routing.has_value(), false);
  for (const SweepPoint& point : plan.points) {
    EXPECT_EQ(point.judge_on.value().seed, 5U);
    EXPECT_EQ(point.judge_on.value().routing.value().label(), "zipf(zipf_alpha=2)");
  }
  EXPECT_EQ(trace_choice_json(fit_on), Json::parse(R"({"step": 1, "tokens": 64})"));
  EXPECT_EQ(trace_choice_json(plan.points[0].judge_on),
            Json::parse(R"({"distribution": "zipf", "zipf_alpha": 2, "seed": 5})"));
}

TEST(FitOn, mistakes_are_refused) {
  const auto with = [](const std::string& fit_on) {
    return error_of("placement: {policies: eplb, fit_on: " + fit_on + "}\n");
  };
  EXPECT_THAT(with("{}"), HasSubstr("names no trace"));
  EXPECT_THAT(with("own"), HasSubstr("expected a map"));
  EXPECT_THAT(with("{stepp: 1}"), HasSubstr("nearest valid key: 'step'"));
  EXPECT_THAT(with("{zipf_alpha: 1}"), HasSubstr("unknown key"));
  EXPECT_THAT(with("{distribution: zipff}"), HasSubstr("nearest: 'zipf'"));
  EXPECT_THAT(with("{distribution: zipf, zipf_alpa: 1, step: 2}"),
              HasSubstr("nearest valid key: 'zipf_alpha'"));
  EXPECT_THAT(with("{tokens: 0}"), HasSubstr("0 is outside 1"));
  EXPECT_THAT(with("{step: -1}"), HasSubstr("-1 is outside 0"));
  EXPECT_THAT(error_of("placement: {policies: contiguous, fit_on: {step: 1}}\n"),
              AllOf(HasSubstr("contiguous is not fitted"), HasSubstr("those that are: eplb")));
}

// What a point is, and what ranks compare, follows every part of it.
TEST(FitOn, is_part_of_the_identity) {
  const auto plan_of = [](const std::string& extra) {
    return make_plan(read("placement: {policies: eplb" + extra + "}\n"));
  };
  const Plan plain = plan_of("");
  for (const char* extra :
       {", fit_on: {step: 1}", ", fit_on: {step: 2}", ", judge_on: {step: 1}"}) {
    const Plan other = plan_of(extra);
    EXPECT_NE(other.fingerprint, plain.fingerprint) << extra;
    EXPECT_NE(point_id(other.points[0]), point_id(plain.points[0])) << extra;
  }
  EXPECT_NE(point_id(plan_of(", fit_on: {step: 1}").points[0]),
            point_id(plan_of(", judge_on: {step: 1}").points[0]));
}

TEST(PlacementFile, is_found_beside_the_experiment) {
  write_map("one.yaml", "[3, 2, 1, 0]");
  const SweepSpec spec = read("placement: [contiguous, {policy: map, file: one.yaml}]\n");
  const Plan plan = make_plan(spec);
  ASSERT_THAT(plan.points, SizeIs(2));
  const SweepPoint& point = plan.points[1];
  EXPECT_THAT(point.placement_map->slots_of_layer(0), ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(placement_label(point), HasSubstr("map(one.yaml "));
  EXPECT_EQ(point.redundant_slots, 0);
  EXPECT_EQ(point_axes_json(point)["placement_map"]["file"], "one.yaml");
  EXPECT_EQ(point_axes_json(plan.points[0])["placement_map"], nullptr);
  EXPECT_EQ(sweep_spec_json(spec)["placement"][1]["policy"], "map");
}

TEST(PlacementFile, counts_its_own_redundant_slots) {
  std::ofstream(testing::TempDir() + "six.yaml")
      << "{num_slots: 6, initial_global_assignments: {0: [0, 1, 2, 3, 0, 0]}}";
  const Plan plan = make_plan(
      read("placement: [eplb, {policy: map, file: six.yaml}]\nredundant_slots: [0, 4]\n"));
  ASSERT_THAT(plan.points, SizeIs(3));
  EXPECT_EQ(plan.points[2].redundant_slots, 2);
}

TEST(PlacementFile, its_content_is_part_of_the_identity) {
  const auto plan_of = [](const std::string& slots) {
    write_map("same_name.yaml", slots);
    return make_plan(read("placement: {policy: map, file: same_name.yaml}\n"));
  };
  const Plan one = plan_of("[0, 1, 2, 3]"), again = plan_of("[0, 1, 2, 3]"),
             other = plan_of("[0, 1, 3, 2]");
  EXPECT_EQ(point_id(one.points[0]), point_id(again.points[0]));
  EXPECT_NE(point_id(one.points[0]), point_id(other.points[0]));
  EXPECT_NE(one.fingerprint, other.fingerprint);
}

TEST(PlacementFile, mistakes_are_refused) {
  write_map("two.yaml", "[0, 1, 2, 3]");
  EXPECT_THAT(error_of("placement: map\n"), HasSubstr("{policy: map, file: PLACEMENT.yaml}"));
  EXPECT_THAT(error_of("placement: {policy: map}\n"), HasSubstr("needs a file"));
  EXPECT_THAT(error_of("placement: {policy: eplb, file: two.yaml}\n"),
              HasSubstr("eplb reads no file; map does"));
  EXPECT_THAT(error_of("placement: {policy: map, file: nowhere.yaml}\n"),
              HasSubstr("nowhere.yaml"));
  EXPECT_THAT(
      error_of("placement: [{policy: map, file: two.yaml}, {policy: map, file: two.yaml}]\n"),
      HasSubstr("listed twice"));
  EXPECT_THAT(error_of("layers: 2\nplacement: {policy: map, file: two.yaml}\n"),
              AllOf(HasSubstr("two.yaml"), HasSubstr("places 1 layers (0)")));
  write_map("three.yaml", "[0, 1, 2, 3]", ", layer_updates_per_iter: 2");
  EXPECT_THAT(error_of("placement: {policy: map, file: three.yaml}\n"), HasSubstr("static"));
}

}  // namespace
}  // namespace epsweep
