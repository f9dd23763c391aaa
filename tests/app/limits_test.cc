// `limits` as a user runs it: exact on the virtual clock, and on real ranks.
#include <map>

#include <gmock/gmock.h>

#include "base/text.h"
#include "support/program.h"

namespace epsweep {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

// A layer of 20 us and 1 us per token of a rank (2 rows of 12288 operations), 30 us beside, times
// 10: TPOT = 0.5 ms + C / P * 10 us. Rank 3, which only EP4 has, takes twice as long:
// TPOT = 0.7 ms + C / P * 20 us.
std::string limits_experiment(const std::vector<std::string>& changes = {}) {
  std::vector<std::string> lines = {
      "model: {name: m, hidden_dim: 64, ffn_dim: 32, num_experts: 8, top_k: 2, num_moe_layers: 10}",
      "ep_sizes: [2, 4]",
      "concurrency: {fixed_global: [64, 128, 256, 512]}",
      "routing: balanced",
      "groups: single",
      "limits: {tpot_ms: 1.5, other_layer_us: 30}",
      "sim: {stages_us: {router: 20, permute: 0, unpermute: 0, count_exchange: 0, dispatch: 0, "
      "combine: 0}, ffn: {flop_per_s: 24576e6, weight_bytes_per_s: 1e18, launch_us: 0}, ranks: {3: "
      "{slowdown: 2}}}"};
  lines.insert(lines.end(), changes.begin(), changes.end());
  return toy_experiment(lines);
}

struct LimitsRun {
  ProgramResult result;
  std::vector<Json> records;
  Json frontier, run;
};

LimitsRun simulate(const std::string& text) {
  const TempDir dir;
  LimitsRun run;
  run.result = run_program("run " + dir.write("x.yaml", text) + " --backend sim --ranks 4 --out " +
                           dir.path("out"));
  run.records = records_of(dir.path("out"));
  run.run = parse_json(read_text_file(dir.path("out/run.json")), "run.json");
  run.frontier =
      parse_json(run_program("report --json " + dir.path("out")).out, "report")["frontier"];
  return run;
}

// "128", "256 again", "+181" of the bisection, "(512)" of a load that was not run.
std::vector<std::string> loads_of(const std::vector<Json>& records, int ep_size) {
  std::vector<std::string> loads;
  for (const Json& record : records) {
    if (record["point"]["ep_size"] != ep_size) continue;
    std::string load = to_json_line(record["point"]["tokens"]);
    if (record["load_from"] == "bisection") load = "+" + load;
    if (record["point"]["attempt"] == 2) load += " again";
    loads.push_back(record["state"] == "stopped" ? "(" + load + ")" : load);
  }
  return loads;
}

// EP2 is within 1.5 ms to C / P = 100: sqrt(128 * 256) = 181, sqrt(181 * 256) = 215.3,
// sqrt(181 * 215) = 197.3; 215 / 197 = 1.09. EP4 to C / P = 40: sqrt(128 * 181) = 152.2,
// sqrt(152 * 181) = 165.9; 166 / 152 = 1.09.
TEST(LimitsSim, TheSearchEndsAtTheObjective) {
  const LimitsRun run = simulate(limits_experiment());
  EXPECT_EQ(run.result.exit_code, 4) << run.result.err;
  EXPECT_THAT(loads_of(run.records, 2), ElementsAre("64", "128", "256", "256 again", "(512)",
                                                    "+181", "+215", "+215 again", "+197"));
  EXPECT_THAT(loads_of(run.records, 4),
              ElementsAre("64", "128", "256", "256 again", "(512)", "+181", "+181 again", "+152",
                          "+166", "+166 again"));
  const Json& edge = run.records[7];  // EP2, 215 tokens, second attempt
  EXPECT_EQ(edge["point"]["tokens_global"], 215);
  EXPECT_EQ(edge["ladder_stop"]["kind"], "latency_objective");
  EXPECT_EQ(edge["ladder_stop"]["at_tokens"], 215);
  EXPECT_TRUE(run.records[6]["ladder_stop"].is_null());
  EXPECT_THAT(to_json_line(run.records[6]["warnings"]), HasSubstr("measured again before it ends"));
  // The slower rank has 108 of 215 tokens' rows or 107.5 of them; 430 rows over 8 experts.
  EXPECT_NEAR(run.records[5]["metrics"]["tpot_ms"].get<double>(), 0.5 + 90.5 * 0.01, 1e-6);
  EXPECT_NEAR(run.records[8]["metrics"]["tokens_per_s_per_user"].get<double>(),
              1e3 / (0.5 + 98.5 * 0.01), 1e-2);
}

// Where TPOT is 1.5 ms, EP2 has C / P = 100 and EP4 has 40: 66667 and 26667 tokens/s/rank.
TEST(LimitsSim, TheFrontierIsExact) {
  const LimitsRun run = simulate(limits_experiment());
  ASSERT_EQ(run.frontier.size(), 1U);
  EXPECT_EQ(run.frontier, run.run["frontier"]);
  const Json& frontier = run.frontier[0];
  const Json& narrow = frontier["curves"][0];
  EXPECT_EQ(narrow["repeats"][0],
            Json({{"admitted_tokens_global", 197}, {"stopped_by", "latency_objective"}}));
  EXPECT_EQ(frontier["curves"][1]["repeats"][0]["admitted_tokens_global"], 152);
  EXPECT_EQ(narrow["loads"].size(), 6U);
  EXPECT_EQ(narrow["loads"][0]["tokens_global"], 64);  // C / P = 32: 0.82 ms
  EXPECT_NEAR(narrow["loads"][0]["model_tokens_per_s_per_rank"]["median"].get<double>(),
              32 / 0.82e-3, 0.1);
  const Json& gain = frontier["gains"][0];
  EXPECT_NEAR(gain["tokens_per_s_per_user"].get<double>(), 1e3 / 1.5, 1e-9);
  EXPECT_NEAR(gain["ratio"]["median"].get<double>(), 0.4, 1e-6);
  EXPECT_THAT(run.result.out, HasSubstr("EP4 against EP2 at 666.7 tok/s/user: 0.40x"));
  EXPECT_THAT(run.result.out, HasSubstr("EP2: 197 tokens admitted, 673.4 tok/s/user and 66330 "));
}

TEST(LimitsSim, TheOrderOfLoadsInTheFileDoesNotMatter) {
  const LimitsRun as_is = simulate(limits_experiment());
  const LimitsRun mixed =
      simulate(limits_experiment({"concurrency: {fixed_global: [512, 64, 256, 128]}"}));
  EXPECT_EQ(mixed.run["identity"], as_is.run["identity"]);
  EXPECT_EQ(mixed.frontier, as_is.frontier);
}

TEST(LimitsSim, ResolutionPerRankLoadsAndTheLaddersEnd) {
  // Tokens of a rank: EP2 to 100, EP4 to 40. sqrt(64 * 128) = 90.5, 128 / 91 < 1.5;
  // sqrt(32 * 64) = 45.3, sqrt(32 * 45) = 37.9: 45 / 38 < 1.5 but 45 / 32 < 1.5 already.
  const LimitsRun coarse = simulate(
      limits_experiment({"explain: none", "concurrency: {fixed_per_rank: [8, 16, 32, 64, 128]}",
                         "limits: {tpot_ms: 1.5, other_layer_us: 30, resolution: 0.5}"}));
  EXPECT_THAT(loads_of(coarse.records, 2),
              ElementsAre("8", "16", "32", "64", "128", "128 again", "+91"));
  EXPECT_THAT(loads_of(coarse.records, 4),
              ElementsAre("8", "16", "32", "64", "64 again", "(128)", "+45", "+45 again"));
  EXPECT_EQ(coarse.frontier[0]["curves"][0]["repeats"][0]["admitted_tokens_global"], 182);
  const LimitsRun open = simulate(limits_experiment({"limits: {other_layer_us: 30}"}));
  EXPECT_EQ(open.result.exit_code, 0) << open.result.err;
  for (const Json& curve : open.frontier[0]["curves"]) {
    EXPECT_EQ(curve["repeats"][0],
              Json({{"admitted_tokens_global", 512}, {"stopped_by", "ladder_end"}}));
  }
}

// A token's time at the median and at p90 differ by the delay that every fifth iteration has:
// 100 us on one rank, so TPOT + 1 ms where it counts.
TEST(LimitsSim, ThePercentileIsTheOneAskedFor) {
  const std::string common = "limits: {tpot_ms: 1.5, other_layer_us: 30, percentile: ";
  const TempDir dir;
  for (const std::string percentile : {"p50", "p90"}) {
    const std::string file = dir.write(
        percentile + ".yaml",
        limits_experiment({"ep_sizes: [2]", "iterations: 10", "concurrency: {fixed_global: [64]}",
                           common + percentile + "}"}));
    const std::string out = dir.path(percentile);
    run_program("run " + file + " --backend sim --ranks 4 --out " + out +
                " --inject delay:rank=1:stage=router:us=100:place=inside:every=5:first=0");
    const std::vector<Json> records = records_of(out);
    EXPECT_NEAR(records[0]["metrics"]["tpot_ms"].get<double>(), percentile == "p50" ? 0.82 : 1.82,
                1e-6);
    EXPECT_EQ(records.size(), percentile == "p50" ? 1U : 2U);
  }
}

// With runs that differ by 10 % loads near the objective are slow now and then: those whose second
// attempt is fast enough are admitted, and only those that are slow twice stop their series.
TEST(LimitsSim, SlowSamplesAreTakenTwice) {
  LimitsRun run = simulate(limits_experiment(
      {"ep_sizes: [2]", "repeats: 10",
       "sim: {stages_us: {router: 20, permute: 0, unpermute: 0, count_exchange: 0, dispatch: 0, "
       "combine: 0}, ffn: {flop_per_s: 24576e6, weight_bytes_per_s: 1e18, launch_us: 0}, noise: "
       "{run: 0.1, seed: 1}}"}));
  std::map<std::pair<int, std::int64_t>, std::vector<Json>> attempts;
  for (Json& record : run.records) {
    if (record["state"] != "simulated") continue;
    const Json& point = record["point"];
    attempts[{point["repeat"].get<int>(), point["tokens_global"].get<std::int64_t>()}].push_back(
        record);
  }
  const auto is_slow = [](const Json& record) {
    return record["metrics"]["tpot_ms"].get<double>() > 1.5;
  };
  int num_rescued = 0;
  for (const auto& [load, of_load] : attempts) {
    ASSERT_EQ(of_load.size(), is_slow(of_load[0]) ? 2U : 1U) << load.second;
    EXPECT_TRUE(of_load[0]["ladder_stop"].is_null());
    if (of_load.size() == 1) continue;
    EXPECT_EQ(of_load[1]["ladder_stop"].is_null(), !is_slow(of_load[1]));
    num_rescued += is_slow(of_load[1]) ? 0 : 1;
  }
  EXPECT_GT(num_rescued, 0);
  EXPECT_EQ(run.frontier[0]["curves"][0]["repeats"].size(), 10U);
}

// As tests/app/ladder_test.cc: the KV room holds 32 tokens of a group.
const std::vector<std::string> kServed = {
    "model: {name: m, hidden_dim: 64, ffn_dim: 32, num_experts: 8, top_k: 2, num_moe_layers: 1, "
    "total_params: 50152, weight_dtype: fp8, attention: {kind: gqa, kv_bytes_per_token: 256}}",
    "hardware: {name: tiny, memory_gb: 0.0005}",
    "serving: {context_tokens: 100, memory_fraction: 1}",
    "ep_sizes: [2]",
    "concurrency: {fixed_global: [64, 8, 16, 128]}",
    "limits: {tokens_per_s_per_user: 1e-5}"};

LimitsRun measure(const std::vector<std::string>& lines) {
  const TempDir dir;
  LimitsRun run;
  run.result = run_on_ranks(
      2, "run " + dir.write("x.yaml", toy_experiment(lines)) + " --out " + dir.path("out"));
  run.records = records_of(dir.path("out"));
  run.run = parse_json(read_text_file(dir.path("out/run.json")), "run.json");
  return run;
}

TEST(LimitsRanks, TheKvRoomsEdgeIsMeasured) {
  const LimitsRun run = measure(kServed);
  EXPECT_EQ(run.result.exit_code, 4) << run.result.err;
  EXPECT_THAT(loads_of(run.records, 2), ElementsAre("8", "16", "(64)", "(128)", "+32"));
  const Json& edge = run.records[4];
  EXPECT_EQ(edge["state"], "measured");
  EXPECT_EQ(edge["index"], 4);
  EXPECT_EQ(edge["timings_file"], "timings/0004.npy");
  EXPECT_TRUE(edge["ladder_stop"].is_null());
  EXPECT_EQ(run.run["frontier"][0]["curves"][0]["repeats"][0],
            Json({{"admitted_tokens_global", 32}, {"stopped_by", "kv_memory"}}));
  EXPECT_THAT(run.result.out, ContainsRegex("EP2: 32 tokens admitted, .* there; kv_memory"));
}

// No load is that fast: both ranks measure the first one twice, and go on to the next series.
TEST(LimitsRanks, RanksAgreeOnWhatIsTooSlow) {
  const LimitsRun run = measure(
      {"ep_sizes: [1, 2]", "concurrency: {fixed_global: [16, 32]}", "limits: {tpot_ms: 1e-6}"});
  EXPECT_EQ(run.result.exit_code, 4) << run.result.err;
  for (const int ep_size : {1, 2}) {
    EXPECT_THAT(loads_of(run.records, ep_size), ElementsAre("16", "16 again", "(32)"));
  }
  EXPECT_THAT(run.result.out, HasSubstr("EP2: no load admitted; latency_objective"));
  EXPECT_THAT(run.result.err, HasSubstr("6/6 stopped"));
}

TEST(LimitsPlan, SaysWhatWillFollow) {
  const TempDir dir;
  const std::string file = dir.write("x.yaml", limits_experiment());
  const ProgramResult plan = run_program("plan " + file);
  EXPECT_THAT(plan.out, HasSubstr("so a layer p50 above 120.0 us"));
  EXPECT_THAT(plan.out, HasSubstr("within 10 %: up to 3 loads more in a series"));
  const Json json = parse_json(run_program("plan --json " + file).out, "plan");
  EXPECT_EQ(json["most_added_loads"], 3);
  EXPECT_EQ(json["experiment"]["limits"]["layers"], 10);
  const ProgramResult wrong = run_program("plan " + file + " --set limits.percentile=p99");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("percentile p99 needs iterations: 100 or more"));
  const ProgramResult twice =
      run_program("plan " + file + " --set limits.tokens_per_s_per_user=20 --set limits.tpot_ms=5");
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("are one objective said twice: keep one"));
  EXPECT_EQ(std::ranges::count(twice.err, '\n'), 1) << twice.err;
}

}  // namespace
}  // namespace epsweep
