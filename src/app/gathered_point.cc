#include "app/gathered_point.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/launch_facts.h"
#include "base/host_probe.h"
#include "base/json.h"

namespace epsweep {
namespace {

Json choice_json(const GemmChoice& choice) {
  Json candidates = Json::array();
  for (const GemmChoice::Candidate& candidate : choice.candidates) {
    const bool measured = candidate.us.has_value();
    candidates.push_back({{"name", candidate.name},
                          {"us", json_or_null(candidate.us)},
                          {"kernel_calls", measured ? Json(candidate.kernel_calls) : Json(nullptr)},
                          {"left_out", measured ? Json(nullptr) : Json(candidate.left_out)}});
  }
  return {{"chosen", choice.chosen}, {"candidates", std::move(candidates)}};
}

// One entry per layer; counts_of() is the way back.
Json counts_json(const std::vector<LayerGemmWork>& layers, GemmWork LayerGemmWork::*gemm) {
  Json json = Json::array();
  for (const LayerGemmWork& layer : layers) {
    const GemmWork& work = layer.*gemm;
    json.push_back({work.kernel_calls, work.computed_rows, work.stored_rows, work.workspace_bytes,
                    work.choice ? choice_json(*work.choice) : Json(nullptr)});
  }
  return json;
}

GemmCounts counts_of(const Json& layer, std::int64_t routed_rows) {
  return {.kernel_calls = layer[0].get<std::int64_t>(),
          .routed_rows = routed_rows,
          .computed_rows = layer[1].get<std::int64_t>(),
          .stored_rows = layer[2].get<std::int64_t>(),
          .workspace_bytes = layer[3].get<std::int64_t>(),
          .choice = layer[4]};
}

// Null where nobody asked for them.
Json counters_json(const WorkCounters& counters) {
  const bool any = counters.cycles || counters.instructions || counters.cache_misses;
  if (!any && counters.why_not.empty()) return nullptr;
  return {{"cycles", json_or_null(counters.cycles)},
          {"instructions", json_or_null(counters.instructions)},
          {"cache_misses", json_or_null(counters.cache_misses)},
          {"why_not", counters.why_not.empty() ? Json() : Json(counters.why_not)}};
}

// Everything but the times, which travel as numbers.
// Null where the device says nothing.
Json condition_json(const DeviceCondition& condition) {
  Json json = {{"clock_mhz", json_or_null(condition.clock_mhz)},
               {"memory_clock_mhz", json_or_null(condition.memory_clock_mhz)},
               {"power_w", json_or_null(condition.power_w)},
               {"temperature_c", json_or_null(condition.temperature_c)},
               {"clock_limits", nullptr}};
  if (condition.clock_limits) json["clock_limits"] = *condition.clock_limits;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_null()) return json;
  }
  return nullptr;
}

Json facts_json(const RankPoint& rank_point) {
  if (!rank_point.outcome) return nullptr;
  const RankOutcome& outcome = *rank_point.outcome;
  OracleResult check = outcome.check_before;
  check.merge(outcome.check_after);
  Json routed_rows = Json::array();
  for (const DispatchPlan& layer : rank_point.work->dispatch) {
    routed_rows.push_back(layer.num_recv_rows());
  }
  return {{"group", rank_point.group->group()},
          {"stop_signal", outcome.stop_signal},
          {"tokens_checked", check.num_tokens_checked},
          {"worst_error", check.worst_error},
          {"problem", json_or_null(check.problem)},
          {"unfinished", json_or_null(check.unfinished)},
          {"gate_up", counts_json(outcome.gemm_work, &LayerGemmWork::gate_up)},
          {"down", counts_json(outcome.gemm_work, &LayerGemmWork::down)},
          {"routed_rows", routed_rows},
          {"prepare", rank_point.prepare_s + outcome.seconds.warm_kernels},
          {"check", outcome.seconds.check},
          {"warmup", outcome.seconds.warmup},
          {"flush", outcome.seconds.flush},
          {"timed", outcome.seconds.measured},
          {"align", rank_point.clock.align_s},
          {"clock", clock_facts_json(rank_point.clock)},
          {"load_wall_s", outcome.load.wall_s},
          {"load_own_cpu_s", outcome.load.own_cpu_s},
          {"load_host_busy_s", json_or_null(outcome.load.host_busy_s)},
          {"counters", counters_json(outcome.counters)},
          {"condition_before", condition_json(outcome.condition_before)},
          {"condition", condition_json(outcome.condition_after)}};
}

// Ranks come in world order, which is EP order inside a group.
void add_gemm(std::vector<std::vector<GemmCounts>>& table, const Json& facts, const char* key) {
  const Json& layers = facts[key];
  if (table.size() < layers.size()) table.resize(layers.size());
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    table[layer].push_back(
        counts_of(layers[layer], facts["routed_rows"][layer].get<std::int64_t>()));
  }
}

void add_check(GatheredPoint& point, const Json& facts, std::size_t rank) {
  point.check.tokens_checked += facts["tokens_checked"].get<std::int64_t>();
  point.check.worst_error =
      std::max(point.check.worst_error.value_or(0.0), facts["worst_error"].get<double>());
  const bool wrong = !facts["problem"].is_null();
  const bool unfinished = !facts["unfinished"].is_null();
  if (!wrong && !unfinished) return;
  // Wrong values outweigh a check that could not finish.
  if (point.check.verdict == CheckVerdict::failed) return;
  if (!wrong && point.check.verdict == CheckVerdict::unfinished) return;
  point.check.verdict = wrong ? CheckVerdict::failed : CheckVerdict::unfinished;
  point.check_problem =
      fmt::format("rank {}: {}", rank, facts[wrong ? "problem" : "unfinished"].get<std::string>());
}

void add_harness(HarnessSeconds& total, const Json& facts) {
  total.prepare = std::max(total.prepare, facts["prepare"].get<double>());
  total.check = std::max(total.check, facts["check"].get<double>());
  total.warmup = std::max(total.warmup, facts["warmup"].get<double>());
  total.flush = std::max(total.flush, facts["flush"].get<double>());
  total.measured = std::max(total.measured, facts["timed"].get<double>());
  total.align = std::max(total.align, facts["align"].get<double>());
}

RankLoad load_of(const Json& facts, std::size_t rank) {
  const Json& busy = facts["load_host_busy_s"];
  return {.rank = static_cast<int>(rank),
          .wall_s = facts["load_wall_s"].get<double>(),
          .own_cpu_s = facts["load_own_cpu_s"].get<double>(),
          .host_busy_s = busy.is_null() ? std::nullopt : std::optional(busy.get<double>())};
}

}  // namespace

GatheredPoint gather_point(const Comm& world, const HostMap& hosts, const RankPoint& rank_point) {
  const std::vector<std::string> texts = world.gather(to_json_line(facts_json(rank_point)), 0);
  GatheredPoint point;
  RawTimes raw = gather_times(world, rank_point);
  if (world.rank() != 0) return point;
  std::vector<RankLoad> loads;
  std::vector<AlignedClock> clocks;
  point.check.verdict = CheckVerdict::passed;
  point.check.when = "before and after timing";
  point.check.tolerance = Oracle::tolerance(rank_point.work->point.dtype);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const Json facts = parse_json(texts[rank], fmt::format("facts of rank {}", rank));
    if (facts.is_null()) continue;
    point.stop_signal = std::max(point.stop_signal, facts["stop_signal"].get<int>());
    add_check(point, facts, rank);
    add_harness(point.harness, facts);
    loads.push_back(load_of(facts, rank));
    point.device_condition_before.push_back(facts["condition_before"]);
    clocks.push_back(aligned_clock(facts["clock"]));
    point.device_condition.push_back(facts["condition"]);
    point.counters.push_back(facts["counters"]);
    if (facts["group"] == 0) {
      add_gemm(point.gemms.gate_up, facts, "gate_up");
      add_gemm(point.gemms.down, facts, "down");
    }
  }
  for (Json* conditions :
       {&point.device_condition_before, &point.device_condition, &point.counters}) {
    if (std::ranges::all_of(*conditions, &Json::is_null)) *conditions = nullptr;
  }
  point.foreign_load = foreign_load(hosts, loads, num_online_cores());
  point.clock = clock_report(clocks);
  point.times = assemble_times(rank_point, std::move(raw), clocks);
  return point;
}

}  // namespace epsweep
