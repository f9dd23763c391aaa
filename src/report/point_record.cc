#include "report/point_record.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "costs/rate_limits.h"
#include "report/breakdown_json.h"
#include "report/bytes_json.h"
#include "report/gemm_json.h"
#include "report/memory_json.h"
#include "report/metric.h"
#include "report/placement_json.h"
#include "report/prediction_json.h"
#include "report/roofline_json.h"
#include "report/sent_bytes.h"
#include "report/slow_rank.h"
#include "report/times_json.h"

namespace epsweep {
namespace {

std::vector<std::int64_t> concatenated(const std::vector<std::vector<std::int64_t>>& layers) {
  std::vector<std::int64_t> all;
  for (const std::vector<std::int64_t>& layer : layers) {
    all.insert(all.end(), layer.begin(), layer.end());
  }
  return all;
}

Json rows_json(const std::vector<std::vector<std::int64_t>>& layers) {
  Json json = row_summary_json(summarize_rows(concatenated(layers)));
  json["per_layer"] = layers;
  return json;
}

void put_workload(const PointRecordInput& input, Json& record) {
  for (const char* key :
       {"routing_checksum", "placement_fitted_on", "placement_score", "realised_skew",
        "rows_per_expert", "rows_per_rank", "m_distribution", "bytes", "ffn", "memory"}) {
    record[key] = nullptr;
  }
  if (!input.workload.has_value()) return;
  const PointWorkload& work = *input.workload;
  record["routing_checksum"] = hex64(work.routing_checksum);
  record["placement_fitted_on"] = json_or_null(work.placement_fitted_on);
  if (work.placement_score) record["placement_score"] = placement_score_json(*work.placement_score);
  record["realised_skew"] = realised_skew_json(work.realised_skew);
  record["rows_per_expert"] = rows_json(work.rows_per_expert);
  record["rows_per_rank"] = rows_json(work.rows_per_rank);
  record["m_distribution"] =
      m_distribution_json(input.point.model, concatenated(work.rows_per_expert), input.gemms);
  record["bytes"] = bytes_json(work);
  put_sent_bytes(input.point, work, record["bytes"]);
  record["ffn"] = {{"routed_rows", work.ffn.routed_rows},
                   {"touched_experts", work.ffn.touched_experts},
                   {"flops", work.ffn.flops},
                   {"weight_bytes", work.ffn.weight_bytes},
                   {"weight_scale_bytes", work.ffn.weight_scale_bytes}};
  record["memory"] = {{"weight_bytes", work.memory.weight_bytes},
                      {"activation_bytes", work.memory.activation_bytes},
                      {"total_bytes", work.memory.total()},
                      {"weight_bytes_per_rank", work.weight_bytes_per_rank}};
}

// Copies of a group are counted on one group; all groups run the same routing.
std::optional<FfnWork> slowest_rank_ffn(const PointRecordInput& input,
                                        const std::vector<int>& world_ranks) {
  const StageSummary& ffn = input.timings->stages[static_cast<std::size_t>(Stage::expert_ffn)];
  const int world_rank = world_ranks.at(static_cast<std::size_t>(ffn.slowest_rank));
  const int ep_rank = input.layout.ep_rank_of_rank.at(static_cast<std::size_t>(world_rank));
  const std::vector<FfnWork>& of_rank = input.workload->ffn_of_rank;
  if (static_cast<std::size_t>(ep_rank) >= of_rank.size()) return std::nullopt;
  return of_rank[static_cast<std::size_t>(ep_rank)];
}

std::optional<FfnRoofline> slowest_rank_roofline(const PointRecordInput& input,
                                                 const std::vector<int>& world_ranks) {
  const std::optional<FfnWork> work = slowest_rank_ffn(input, world_ranks);
  if (!work || !input.ceilings) return std::nullopt;
  const auto row = static_cast<std::size_t>(
      input.timings->stages[static_cast<std::size_t>(Stage::expert_ffn)].slowest_rank);
  const RankCeilings& rank = input.ceilings->ranks.at(row);
  return ffn_roofline(*work, input.point.model, input.point.dtype, input.point.num_routings(),
                      input.timings->ffn_p50_s_of_rank.at(row),
                      {.flop_per_s = rank.flop_per_s.value_or(0),
                       .read_bytes_per_s = rank.read_bytes_per_s.value_or(0)});
}

void put_metrics(const PointRecordInput& input, const std::vector<int>& world_ranks, Json& record) {
  const PointFacts facts = {
      .point = input.point,
      .summary = *input.timings,
      .num_groups = input.layout.num_groups,
      .num_active_ranks = static_cast<int>(world_ranks.size()),
      .traffic = input.workload->traffic,
      .ffn = input.workload->ffn,
      .slowest_rank_ffn = slowest_rank_ffn(input, world_ranks),
      .ffn_roofline = slowest_rank_roofline(input, world_ranks),
      .exchange_line = input.ceilings ? input.ceilings->exchange : std::nullopt};
  record["ffn_roofline"] = roofline_json(facts.ffn_roofline);
  Json json = Json::object();
  const MetricCatalog& catalog = MetricCatalog::instance();
  for (const std::string& name : catalog.names()) {
    json[name] = json_or_null(catalog.at(name).compute(facts));
  }
  record["metrics"] = std::move(json);
}

void put_times(const PointRecordInput& input, Json& record) {
  for (const char* key : {"layer", "all_stages", "entry_skew_us", "stages", "ffn_p50_us_of_rank",
                          "breakdown", "ffn_roofline", "metrics", "timings_file", "chains_file"}) {
    record[key] = nullptr;
  }
  if (!has_times(input.state)) return;
  const std::vector<int> world_ranks = active_ranks(input.layout);
  const PointSummary& timings = *input.timings;
  record["layer"] = layer_json(timings, world_ranks);
  record["all_stages"] = all_stages_json(timings, world_ranks);
  record["entry_skew_us"] = entry_skew_json(timings);
  record["stages"] = stages_json(timings, world_ranks);
  record["breakdown"] = breakdown_json(input.breakdown);
  record["ffn_p50_us_of_rank"] = us_vector_json(timings.ffn_p50_s_of_rank);
  put_metrics(input, world_ranks, record);
  if (!input.timings_file.empty()) record["timings_file"] = input.timings_file;
  if (!input.chains_file.empty()) record["chains_file"] = input.chains_file;
}

Json check_json(const std::optional<CheckResult>& check) {
  if (!check.has_value()) return nullptr;
  return {{"verdict", kCheckVerdictNames[static_cast<std::size_t>(check->verdict)]},
          {"worst_error", json_or_null(check->worst_error)},
          {"tolerance", check->tolerance},
          {"tokens_checked", check->tokens_checked},
          {"when", check->when}};
}

// Of the rows of the timing table, all layers; groups run the same routing.
std::vector<std::int64_t> routed_rows_of_rows(const PointRecordInput& input) {
  std::vector<std::int64_t> rows;
  for (const int rank : active_ranks(input.layout)) {
    const auto ep_rank =
        static_cast<std::size_t>(input.layout.ep_rank_of_rank.at(static_cast<std::size_t>(rank)));
    std::int64_t sum = 0;
    for (const auto& layer : input.workload->rows_per_rank) sum += layer.at(ep_rank);
    rows.push_back(sum);
  }
  return rows;
}

std::vector<std::string> all_warnings(const PointRecordInput& input) {
  std::vector<std::string> warnings = input.warnings;
  if (input.workload.has_value() && input.workload->placement_score.has_value()) {
    const std::vector<std::string>& more = input.workload->placement_score->warnings;
    warnings.insert(warnings.end(), more.begin(), more.end());
  }
  if (!has_times(input.state)) return warnings;
  // Virtual ranks took turns on the same devices: none of them is slow by itself.
  const bool took_turns = input.prediction.is_object() && input.prediction.contains("label");
  for (const SlowRank& rank :
       slow_ranks(input.timings->ffn_p50_s_of_rank, routed_rows_of_rows(input))) {
    if (took_turns) break;
    const std::vector<int> world_ranks = active_ranks(input.layout);
    warnings.push_back(slow_rank_text(rank, world_ranks.at(static_cast<std::size_t>(rank.row))));
  }
  const std::vector<std::string> of_times = time_warnings(*input.timings);
  warnings.insert(warnings.end(), of_times.begin(), of_times.end());
  return warnings;
}

// A load that cannot be planned at all has no memory to speak of.
std::optional<ServingMemory> memory_of(const SweepPoint& point) {
  return infeasible_reason(point) ? std::nullopt : serving_memory(point);
}

void expect_consistent(const PointRecordInput& input) {
  EPS_EXPECT(!input.reason.empty() || input.state == PointState::empty ||
                 (has_times(input.state) && input.state != PointState::impossible),
             "a point that was not measured needs a reason");
  if (!has_times(input.state)) return;
  EPS_EXPECT(input.timings.has_value() && input.workload.has_value(),
             "a measured point needs its times and its workload");
  const bool simulated =
      input.state == PointState::simulated || input.state == PointState::predicted;
  EPS_EXPECT(simulated || (input.check && input.check->verdict == CheckVerdict::passed),
             "a measured point needs a passed check");
  EPS_EXPECT(!simulated || (input.check && input.check->verdict == CheckVerdict::not_run),
             "a simulated point has nothing to check");
  EPS_EXPECT(input.timings->ffn_p50_s_of_rank.size() == active_ranks(input.layout).size(),
             "times are not of the ranks in groups");
  EPS_EXPECT(!input.ceilings || input.ceilings->ranks.size() == active_ranks(input.layout).size(),
             "ceilings are not of the ranks in groups");
}

}  // namespace

Json row_summary_json(const RowSummary& rows) {
  return {{"num_entries", rows.num_entries},
          {"total", rows.total},
          {"mean", rows.mean},
          {"min", rows.min},
          {"p10", rows.p10},
          {"median", rows.median},
          {"p90", rows.p90},
          {"max", rows.max},
          {"max_over_mean", json_or_null(rows.max_over_mean)},
          {"empty_fraction", rows.empty_fraction}};
}

Json realised_skew_json(const std::optional<RealisedSkew>& skew) {
  if (!skew.has_value()) return nullptr;
  return {{"asked_max_over_mean", skew->asked},
          {"param", skew->param},
          {"values", skew->values},
          {"max_over_mean", skew->max_over_mean}};
}

std::vector<int> active_ranks(const GroupLayout& layout) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < layout.group_of_rank.size(); ++rank) {
    if (layout.group_of_rank[rank] >= 0) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::vector<int> ep_ranks_of_rows(const GroupLayout& layout) {
  std::vector<int> ep_ranks;
  for (const int rank : active_ranks(layout)) {
    ep_ranks.push_back(layout.ep_rank_of_rank[static_cast<std::size_t>(rank)]);
  }
  return ep_ranks;
}

Json make_point_record(const PointRecordInput& input) {
  expect_consistent(input);
  const std::string no_tokens = "zero tokens on every rank: nothing to measure";
  const bool needs_text = input.state == PointState::empty && input.reason.empty();
  const std::string& reason = needs_text ? no_tokens : input.reason;
  std::vector<std::int64_t> tokens_per_rank;
  for (const TokenRange& range : token_ranges(input.point)) tokens_per_rank.push_back(range.size());

  Json record = {{"schema_version", kSchemaVersion},
                 {"id", point_id(input.point)},
                 {"index", input.point.index},
                 {"state", to_string(input.state)},
                 {"reason", reason.empty() ? Json(nullptr) : Json(reason)},
                 {"point", sweep_point_json(input.point)},
                 {"load_from", to_string(input.point.load_from)},
                 {"world_size", input.world_size},
                 {"num_groups", input.layout.num_groups},
                 {"num_active_ranks", active_ranks(input.layout).size()},
                 {"idle_ranks", input.layout.idle_ranks},
                 {"tokens_per_rank", tokens_per_rank}};
  put_workload(input, record);
  put_times(input, record);
  record["prediction"] = prediction_json(input);
  record["check"] = check_json(input.check);
  record["load"] = {{"ranks", input.load.ranks},
                    {"cores", input.load.cores},
                    {"oversubscribed", input.load.oversubscribed()},
                    {"ranks_per_device", input.load.ranks_per_device},
                    {"foreign_load", json_or_null(input.load.foreign_load)}};
  record["device_condition_before"] = input.device_condition_before;
  record["device_condition"] = input.device_condition;
  record["counters"] = input.counters;
  record["harness_s"] = {{"prepare", input.harness.prepare},   {"check", input.harness.check},
                         {"warmup", input.harness.warmup},     {"flush", input.harness.flush},
                         {"measured", input.harness.measured}, {"align", input.harness.align}};
  record["clock"] = clock_report_json(input.clock);
  record["warnings"] = all_warnings(input);
  record["serving_memory"] = serving_memory_json(memory_of(input.point));
  record["ladder_stop"] = ladder_stop_json(input.ladder_stop);
  return record;
}

Json record_formulas() {
  Json metrics = Json::object();
  const MetricCatalog& catalog = MetricCatalog::instance();
  for (const std::string& name : catalog.names()) {
    const MetricEntry& entry = catalog.at(name);
    metrics[name] = {
        {"unit", entry.unit}, {"better", to_string(entry.better)}, {"formula", entry.formula}};
  }
  return {
      {"times", times_formulas()},
      {"max_over_mean", "max / mean of the rows over all (layer, expert)s or (layer, rank)s"},
      {"realised_skew",
       "of routings that ask for max_over_mean: by layer, the value of the skew parameter that was "
       "found and the max / mean rows per expert it led to, within 1 % or one row of what was "
       "asked; rank imbalance follows from EP size and placement"},
      {"empty_fraction", "share of the (layer, expert)s or (layer, rank)s without rows"},
      {"vary_routing",
       "steps of the request stream that iterations go through; rows, bytes and operations are of "
       "all of them, per_layer has the layers of step after step"},
      {"placement_score", placement_score_formulas()},
      {"bytes", bytes_formula()},
      {"sent", sent_bytes_formula()},
      {"ffn",
       "one group, summed over layers and steps; flops = 2 * routed rows * parameters of an "
       "expert; "
       "weight_scale_bytes: scales of fp8 weights, beside weight_bytes"},
      {"breakdown", breakdown_formula()},
      {"ffn_roofline", roofline_formula()},
      {"prediction", prediction_formula()},
      {"impossible", impossible_formula()},
      {"serving_memory", serving_memory_formula()},
      {"ladder_stop",
       "the load at which the point's series (all axes equal but the load) was stopped, and why; a "
       "load above the latency objective stops it at its second attempt"},
      {"frontier",
       "per EP size tokens/s per rank against tokens/s per user, see the metrics: medians of "
       "repeats, a repeat's second attempt at a load counted like its first (the lower TPOT of two "
       "is their nearest-rank median); gains are at equal tokens/s per user, linear between "
       "neighbouring loads, and only where all repeats of both EP sizes measured on both sides; "
       "their low and high: low of one over high of the other"},
      {"load_from",
       "ladder: of the experiment; bisection: between the last admitted and the first refused load "
       "of its series; bridge: (P_b, C_a) or (P_a, C_b) of two asked points, so that width and "
       "concurrency are told apart; counterfactual: an asked point with balanced routing, "
       "contiguous experts or, as transport local_copy, a local copy of the same rows instead"},
      {"counters",
       "by working rank, of the timed iterations of both passes and the flushing between them: "
       "what "
       "Linux counted for the rank's threads in user mode; why_not: what was not allowed"},
      {"m_distribution", m_distribution_formula()},
      {"foreign_load",
       "CPU time of other programs / (cores * time) from the first to the last timed iteration, on "
       "the busiest host; null below 0.5 s of CPU time, which 10 ms clock ticks cannot tell"},
      {"clock", clock_report_formula()},
      {"metrics", std::move(metrics)},
  };
}

}  // namespace epsweep
