// Which points come after which, whatever engine runs them.
#include "app/sweep_walk.h"

#include <functional>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "costs/serving_memory.h"

namespace epsweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SweepSpec spec_of(std::vector<std::int64_t> loads,
                  ConcurrencyMode mode = ConcurrencyMode::fixed_global) {
  SweepSpec spec;
  spec.name = "s";
  spec.model = {.name = "m", .num_experts = 8, .top_k = 2};
  spec.ep_sizes = {2};
  for (const std::int64_t tokens : loads) {
    spec.concurrency.push_back({.mode = mode, .tokens = tokens, .tokens_per_rank = {}});
  }
  spec.routing = {{.distribution = "uniform", .params = {}, .file = {}}};
  spec.placement = {{.name = "contiguous", .redundant_slots = 0}};
  spec.transport = {"pairwise"};
  spec.grouped_gemm = {"onednn"};
  spec.dtype = {DType::bf16};
  spec.mapping = {Mapping::packed};
  spec.limits = Limits{};
  return spec;
}

LadderStop stop_of(const SweepPoint& point, StopKind kind) {
  return {.kind = kind, .at_tokens = point.tokens_global(), .reason = "because"};
}

// Runs the whole walk as an engine does; `met` says what limit a point meets once it runs.
using Met = std::function<std::optional<StopKind>(const SweepPoint&)>;
std::vector<SweepPoint> walk_through(const Plan& plan, const Met& met) {
  SweepWalk walk(plan);
  std::vector<SweepPoint> points;
  while (const auto point = walk.next()) {
    points.push_back(*point);
    if (const auto refusal = walk.refusal(*point, "")) {
      walk.end(*point, end_of(*point, *refusal));
      continue;
    }
    PointEnd end{.state = PointState::measured, .met = {}};
    if (const auto kind = met(*point)) end.met = stop_of(*point, *kind);
    walk.end(*point, end);
    EXPECT_LE(static_cast<int>(points.size()), walk.num_points());
  }
  EXPECT_EQ(static_cast<int>(points.size()), walk.num_points());
  return points;
}

// "16", "32 again", "+23" for a load of the bisection.
std::vector<std::string> loads_of(const std::vector<SweepPoint>& points) {
  std::vector<std::string> loads;
  for (const SweepPoint& point : points) {
    loads.push_back(fmt::format("{}{}{}", point.load_from == LoadFrom::bisection ? "+" : "",
                                point.concurrency.tokens, point.attempt > 1 ? " again" : ""));
  }
  return loads;
}

Met slow_above(std::int64_t tokens_global) {
  return [tokens_global](const SweepPoint& point) -> std::optional<StopKind> {
    if (point.tokens_global() <= tokens_global) return std::nullopt;
    return StopKind::latency_objective;
  };
}

// sqrt(32 * 64) = 45.3, sqrt(32 * 45) = 37.9, sqrt(38 * 45) = 41.4; 41 / 38 = 1.08.
TEST(SweepWalk, ClimbsConfirmsAndBisects) {
  const Plan plan = make_plan(spec_of({16, 32, 64, 128}));
  const auto points = walk_through(plan, slow_above(40));
  EXPECT_THAT(loads_of(points), ElementsAre("16", "32", "64", "64 again", "128", "+45", "+45 again",
                                            "+38", "+41", "+41 again"));
  std::set<int> indices;
  for (const SweepPoint& point : points) indices.insert(point.index);
  EXPECT_EQ(indices.size(), points.size());
  EXPECT_EQ(*indices.rbegin(), 9);
  EXPECT_EQ(points[3].index, 4);  // added ones are behind those of the plan
  EXPECT_EQ(points[4].index, 3);
}

TEST(SweepWalk, OneSlowSampleDoesNotStopTheSweep) {
  const auto points = walk_through(make_plan(spec_of({16, 32, 64})),
                                   [](const SweepPoint& point) -> std::optional<StopKind> {
                                     if (point.tokens_global() != 32 || point.attempt > 1)
                                       return std::nullopt;
                                     return StopKind::latency_objective;
                                   });
  EXPECT_THAT(loads_of(points), ElementsAre("16", "32", "32 again", "64"));
}

TEST(SweepWalk, WithoutLimitsNothingIsBisectedButSlowSamplesAreConfirmed) {
  SweepSpec spec = spec_of({16, 64, 128});
  spec.limits.reset();
  spec.latency_objective_us = 500;
  EXPECT_THAT(loads_of(walk_through(make_plan(spec), slow_above(40))),
              ElementsAre("16", "64", "64 again", "128"));
}

// In fixed_per_rank loads are tokens of a rank: 40 of a group of two are 20 each.
// sqrt(16 * 32) = 22.6, sqrt(16 * 23) = 19.2, sqrt(19 * 23) = 20.9; 21 / 19 = 1.11, between
// them 20.
TEST(SweepWalk, LoadsAreInTheUnitOfTheLadder) {
  const Plan plan = make_plan(spec_of({8, 16, 32}, ConcurrencyMode::fixed_per_rank));
  const auto points = walk_through(plan, [](const SweepPoint& point) -> std::optional<StopKind> {
    if (point.tokens_global() <= 40) return std::nullopt;
    return StopKind::device_memory;
  });
  EXPECT_THAT(loads_of(points), ElementsAre("8", "16", "32", "+23", "+19", "+21", "+20"));
  EXPECT_EQ(points.back().tokens_global(), 40);
}

// Every repeat searches on its own, in its own place; variants share the ladder's neighbourhood.
TEST(SweepWalk, RepeatsAndVariantsSearchOnTheirOwn) {
  SweepSpec spec = spec_of({32, 64});
  spec.repeats = 2;
  const auto repeated = walk_through(make_plan(spec), [](const SweepPoint& point) {
    return slow_above(point.repeat == 0 ? 40 : 60)(point);
  });
  EXPECT_THAT(loads_of(repeated),
              ElementsAre("32", "64", "64 again", "+45", "+45 again", "+38", "+41", "+41 again",
                          "32", "64", "64 again", "+45", "+54", "+59"));
  EXPECT_EQ(repeated[7].repeat, 0);
  EXPECT_EQ(repeated[8].repeat, 1);
  SweepSpec two = spec_of({32, 64});
  two.transport = {"pairwise", "alltoallv"};
  const auto variants = walk_through(make_plan(two), [](const SweepPoint& point) {
    return slow_above(point.transport == "pairwise" ? 40 : 100)(point);
  });
  EXPECT_THAT(loads_of(variants), ElementsAre("32", "32", "64", "64 again", "+45", "+45 again",
                                              "+38", "+41", "+41 again", "64"));
  EXPECT_EQ(variants[8].transport, "pairwise");
  EXPECT_EQ(variants[9].transport, "alltoallv");
}

// What explains a point has its load; nothing is searched beside it.
TEST(SweepWalk, CounterfactualsAreNotBisected) {
  SweepSpec spec = spec_of({32, 64});
  spec.explain = Explain::deep;
  const auto points = walk_through(make_plan(spec), slow_above(40));
  int num_counterfactuals = 0;
  for (const SweepPoint& point : points) {
    if (point.transport != "local_copy" && point.routing.distribution != "balanced") continue;
    ++num_counterfactuals;
    EXPECT_EQ(point.load_from, LoadFrom::counterfactual);
    EXPECT_THAT(point.concurrency.tokens, testing::AnyOf(32, 64));
  }
  EXPECT_EQ(num_counterfactuals, 2 * 3);  // 64 tokens twice, as any slow load
}

// As tests/app/ladder_test.cc: 16 sequences of a rank fit, so 32 tokens of a group.
SweepSpec serving_spec(std::vector<std::int64_t> loads) {
  SweepSpec spec = spec_of(std::move(loads));
  spec.model.hidden_dim = 64;
  spec.model.expert_io_dim = 64;
  spec.model.ffn_dim = 32;
  spec.model.num_moe_layers = 1;
  spec.model.total_params = 50152;
  spec.model.weight_dtype = "fp8";
  spec.model.attention.kind = "gqa";
  spec.model.attention.kv_bytes_per_token = 256;
  spec.hardware = HardwareShape{};
  spec.hardware->memory_bytes = 500'000;
  spec.serving = Serving{};
  spec.serving->context_tokens = 100;
  spec.serving->memory_fraction = 1;
  return spec;
}

TEST(SweepWalk, TheKvRoomsEdgeIsFoundWithoutRunning) {
  const Met nothing = [](const SweepPoint&) { return std::optional<StopKind>(); };
  EXPECT_THAT(loads_of(walk_through(make_plan(serving_spec({8, 16, 64, 128})), nothing)),
              ElementsAre("8", "16", "64", "128", "+32"));
  // Where the edge is too slow, what is below it is searched: sqrt(16 * 32) = 22.6,
  // sqrt(16 * 23) = 19.2, sqrt(19 * 23) = 20.9; 21 / 20 = 1.05.
  EXPECT_THAT(loads_of(walk_through(make_plan(serving_spec({16, 64})), slow_above(20))),
              ElementsAre("16", "64", "+32", "+32 again", "+23", "+23 again", "+19", "+21",
                          "+21 again", "+20"));
}

TEST(SweepWalk, TheOrderOfRefusalsIsPlanLadderKvRoom) {
  const Plan plan = make_plan(serving_spec({64, 128}));
  SweepWalk walk(plan);
  const SweepPoint first = *walk.next();
  EXPECT_EQ(walk.refusal(first, "no such thing")->state, PointState::skipped);
  EXPECT_EQ(walk.refusal(first, "no such thing")->reason, "no such thing");
  const auto of_kv = walk.refusal(first, "");
  ASSERT_TRUE(of_kv.has_value());
  EXPECT_EQ(of_kv->stop->kind, StopKind::kv_memory);
  EXPECT_EQ(of_kv->stop->at_tokens, 64);
  EXPECT_THAT(of_kv->reason, HasSubstr("kv_memory: "));
  EXPECT_TRUE(end_of(first, *of_kv).met.has_value());
  walk.end(first, end_of(first, *of_kv));
  const SweepPoint second = *walk.next();
  const auto beyond = walk.refusal(second, "");
  EXPECT_EQ(beyond->reason, "beyond 64 tokens: kv_memory stopped the series");
  EXPECT_EQ(beyond->stop->at_tokens, 64);
  EXPECT_FALSE(end_of(second, *beyond).met.has_value());  // not again
  EXPECT_EQ(walk.refusal(second, "no such thing")->state, PointState::skipped);
  const Refusal memory = memory_refusal(second, "1 GiB short");
  EXPECT_EQ(memory.reason, "device_memory: 1 GiB short");
  EXPECT_EQ(end_of(second, memory).met->kind, StopKind::device_memory);
}

TEST(SweepWalk, AfterASignalOnlyPlannedPointsCome) {
  const Plan plan = make_plan(spec_of({16, 32, 64}));
  SweepWalk walk(plan);
  const SweepPoint first = *walk.next();
  walk.end(first,
           {.state = PointState::measured, .met = stop_of(first, StopKind::latency_objective)});
  walk.close();
  for (const std::int64_t tokens : {32, 64}) {
    const auto point = walk.next();
    ASSERT_TRUE(point.has_value());
    EXPECT_EQ(point->concurrency.tokens, tokens);
    walk.end(*point, {.state = PointState::stopped, .met = {}});
  }
  EXPECT_FALSE(walk.next().has_value());
  EXPECT_EQ(walk.num_points(), 3);
}

TEST(SweepWalk, AFailedPointEndsTheBisectionNotTheSweep) {
  SweepSpec spec = spec_of({32, 64});
  spec.ep_sizes = {2, 4};
  const Plan plan = make_plan(spec);
  SweepWalk walk(plan);
  std::vector<SweepPoint> points;
  while (const auto point = walk.next()) {
    points.push_back(*point);
    PointEnd end{.state = PointState::measured, .met = {}};
    if (point->ep_size == 2 && point->concurrency.tokens == 64) {
      end.met = stop_of(*point, StopKind::device_memory);
    }
    if (point->load_from == LoadFrom::bisection) end.state = PointState::failed;
    walk.end(*point, end);
  }
  EXPECT_THAT(loads_of(points), ElementsAre("32", "64", "+45", "32", "64"));
}

}  // namespace
}  // namespace epsweep
