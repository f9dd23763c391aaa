// Causes that are put into simulated launches, and found in the report where they were put.
#include <cmath>

#include <gmock/gmock.h>

#include "support/program.h"

namespace epsweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Two EP sizes at one load in four repeats. One expert's weights take 100 us, its rows and the
// links nothing; stages of 5 us and exchanges of 20.
struct Planted {
  std::string ep_sizes = "[2, 4]";
  std::string load = "{fixed_global: [64]}";
  std::string routing = "balanced";
  std::string ffn = "{flop_per_s: 1e18, weight_bytes_per_s: 122.88e6, launch_us: 0}";
  std::string stages = "{dispatch: 20, combine: 20, count_exchange: 5}";
  std::string more_sim;  // further keys of `sim`
  std::vector<std::string> changes;
};

struct WhyRun {
  Json why;
  std::string text;
};

WhyRun why_of(const Planted& planted) {
  const TempDir dir;
  const std::string sim =
      "sim: {ffn: " + planted.ffn + ", stages_us: " + planted.stages + planted.more_sim + "}";
  std::vector<std::string> lines = {"ep_sizes: " + planted.ep_sizes, "concurrency: " + planted.load,
                                    "routing: " + planted.routing, "repeats: 4", sim};
  lines.insert(lines.end(), planted.changes.begin(), planted.changes.end());
  const std::string out = dir.path("out");
  const ProgramResult run = run_program("run " + dir.write("x.yaml", toy_experiment(lines)) +
                                        " --backend sim --ranks 4 --out " + out);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const ProgramResult report = run_program("report --json " + out);
  return {.why = parse_json(report.out, "report")["why"], .text = run.out};
}

Json only_pair(const Json& why) {
  EXPECT_EQ(why.size(), 1U);
  return why.at(0);
}

double term(const Json& terms, const std::string& cause) {
  return terms["terms_us"][cause].get<double>();
}

double sum_of(const Json& terms, const std::vector<std::string>& causes) {
  double sum = 0;
  for (const std::string& cause : causes) sum += term(terms, cause);
  return sum;
}

// At least 95 % of the effect, in those terms together.
void expect_explained(const Json& pair, const std::vector<std::string>& causes, double effect_us) {
  const Json& attribution = pair["attribution"];
  EXPECT_NEAR(attribution["difference_us"].get<double>(), effect_us, 0.05 * std::abs(effect_us))
      << attribution;
  EXPECT_NEAR(sum_of(attribution, causes), effect_us, 0.05 * std::abs(effect_us)) << attribution;
}

const std::vector<std::string> kInterconnect = {
    "dispatch_alpha", "dispatch_bytes", "dispatch_dedup", "dispatch_off_line",
    "combine_alpha",  "combine_bytes",  "combine_dedup",  "combine_off_line"};

// 4 experts of 100 us to a rank, then 2.
TEST(Why, HalfTheWeightsToARank) {
  const WhyRun run = why_of({});
  const Json pair = only_pair(run.why);
  expect_explained(pair, {"weight_traffic"}, -200);
  EXPECT_EQ(pair["verdict"], "difference");
  EXPECT_THAT(run.text, AllOf(HasSubstr("EP4 against EP2: 43.5 % faster"),
                              HasSubstr("Largest gain: weight traffic (-200.0 us per layer")));
  EXPECT_NEAR(term(pair["attribution"], "residual"), 0, 0.01);
}

// Operations alone: 128 tokens on 2 ranks, 256 on 4. More tokens cost what the wider EP saves.
TEST(Why, OnlyMoreTokens) {
  // 2 * 6144 operations to a row, 128 rows to a rank of EP2 at C 128: 500 us.
  const double flop_per_s = 128.0 * 2 * 6144 / 500e-6;
  const Planted planted{.load = "{fixed_per_rank: [64]}",
                        .ffn = "{flop_per_s: " + std::to_string(flop_per_s) +
                               ", weight_bytes_per_s: 1e15, launch_us: 0}"};
  const WhyRun run = why_of(planted);
  const Json attribution = only_pair(run.why)["attribution"];
  EXPECT_NEAR(attribution["difference_us"].get<double>(), 0, 0.01);
  const Json& effects = attribution["effects"];
  // (EP4, 128) takes 250 us and (EP2, 256) 1000: the two orders are 250 and 500.
  EXPECT_NEAR(attribution["width_first"]["concurrency"]["difference_us"].get<double>(), 250, 1);
  EXPECT_NEAR(attribution["concurrency_first"]["concurrency"]["difference_us"].get<double>(), 500,
              1);
  EXPECT_NEAR(term(effects["concurrency"], "expert_compute"), 375, 1);
  EXPECT_NEAR(term(effects["width"], "expert_compute"), -375, 1);
  EXPECT_THAT(run.text, HasSubstr("no difference shown"));
  EXPECT_THAT(run.text, HasSubstr("wider first: concurrency +250.0, width -250.0"));
}

TEST(Why, ASlowerLink) {
  const Planted planted{.ffn = "{flop_per_s: 1e18, weight_bytes_per_s: 1e15, launch_us: 0}",
                        .stages = "{count_exchange: 5}",
                        .more_sim = ", exchange: {intra_alpha_us: 13, inter_alpha_us: 213}",
                        .changes = {"topology: {hosts: 2, ranks_per_host: 2}"}};
  const WhyRun run = why_of(planted);
  expect_explained(only_pair(run.why), kInterconnect, 400);
  EXPECT_THAT(run.text, HasSubstr("Largest loss: interconnect (+400.1 us per layer"));
  EXPECT_NEAR(sum_of(only_pair(run.why)["attribution"], {"dispatch_alpha", "combine_alpha"}), 400,
              1);
}

// Rank 3 is in the EP4 group only. Its experts take 200 us more than those of the others, and its
// other stages little.
TEST(Why, ASlowHost) {
  const Planted planted{.ffn = "{flop_per_s: 1e18, weight_bytes_per_s: 122.88e6, launch_us: 0}",
                        .stages =
                            "{router: 1, permute: 1, unpermute: 1, dispatch: 1, combine: 1, "
                            "count_exchange: 1, expert_ffn: 200}",
                        .more_sim = ", ranks: {3: {slowdown: 2}}",
                        .changes = {"groups: single"}};
  const WhyRun run = why_of(planted);
  const Json pair = only_pair(run.why);
  expect_explained(pair, {"host"}, 205);
  EXPECT_THAT(run.text, HasSubstr("Largest loss: slow hosts (+20"));
}

// All 128 rows are for the two experts of EP4's rank 0, 1 us each: ranks have 64 rows in the mean
// at EP2 and 32 at EP4, and one has 128 at both. What rows save is lost to skew.
TEST(Why, AHotRank) {
  const Planted planted{.routing = "{distribution: hot_rank, hot_ep_size: 4, hot_fraction: 1}",
                        .ffn = "{flop_per_s: " + std::to_string(2 * 6144 / 1e-6) +
                               ", weight_bytes_per_s: 1e15, launch_us: 0}"};
  const Json attribution = only_pair(why_of(planted).why)["attribution"];
  EXPECT_NEAR(attribution["difference_us"].get<double>(), 0, 0.01);
  EXPECT_NEAR(term(attribution, "expert_compute"), -32, 0.1);
  EXPECT_NEAR(sum_of(attribution, {"skew", "skew_floor"}), 32, 0.1);
  EXPECT_NEAR(term(attribution, "host"), 0, 0.1);
}

TEST(Why, Nothing) {
  const Planted planted{.stages = "{dispatch: 20, combine: 20, count_exchange: 5, expert_ffn: 50}"};
  const WhyRun run = why_of(planted);
  const Json pair = only_pair(run.why);
  EXPECT_EQ(pair["verdict"], "nothing_shown");
  EXPECT_THAT(run.text, HasSubstr("EP4 against EP2: no difference shown"));
}

// Weights fall by 200 us and links cost 400: both are named, with their signs.
TEST(Why, TwoCausesAtOnce) {
  const Planted planted{.stages = "{count_exchange: 5}",
                        .more_sim = ", exchange: {intra_alpha_us: 13, inter_alpha_us: 213}",
                        .changes = {"topology: {hosts: 2, ranks_per_host: 2}"}};
  const WhyRun run = why_of(planted);
  const Json attribution = only_pair(run.why)["attribution"];
  EXPECT_NEAR(term(attribution, "weight_traffic"), -200, 2);
  EXPECT_NEAR(sum_of(attribution, kInterconnect), 400, 4);
  EXPECT_THAT(run.text, HasSubstr("Largest gain: weight traffic (-200.0"));
  EXPECT_THAT(run.text, HasSubstr("largest loss: interconnect (+400.1"));
}

// EP2 has no room for the load.
TEST(Why, CapacityIsAVerdict) {
  const TempDir dir;
  const std::string out = dir.path("out");
  const ProgramResult run = run_program(
      "run " +
      dir.write("x.yaml", toy_experiment({"ep_sizes: [2, 4]", "concurrency: {fixed_global: [64]}",
                                          "routing: balanced",
                                          "hardware: {name: tiny, memory_gb: 0.00009}"})) +
      " --backend sim --ranks 4 --out " + out);
  EXPECT_THAT(run.out, HasSubstr("EP4 wins on capacity, not speed")) << run.out << run.err;
}

}  // namespace
}  // namespace epsweep
