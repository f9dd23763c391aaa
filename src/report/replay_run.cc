#include "report/replay_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "report/metric.h"
#include "report/point_record.h"
#include "report/record_access.h"
#include "report/record_layout.h"
#include "report/record_limits.h"
#include "report/run_times.h"
#include "report/summary.h"
#include "report/times_json.h"

namespace epsweep {
namespace {

// 0 where the record has none.
std::int64_t count_of(const Json& record, const char* path) {
  const Json* value = find_value(record, path);
  if (value == nullptr || !value->is_number_integer()) return 0;
  return std::max<std::int64_t>(value->get<std::int64_t>(), 0);
}

TableRows rows_of(const Json& record, const GroupLayout& layout) {
  TableRows rows = rows_of_layout(layout);
  rows.order_bound_s = find_number(record, "all_stages.order_bound_us").value_or(0) * 1e-6;
  return rows;
}

PassFactsOfRanks stored_facts(const Json& record, const std::string& part) {
  return {.stop = find_text(record, part + ".pass.stop"),
          .precision = find_number(record, part + ".pass.precision"),
          .disturbed = {}};
}

Traffic stored_traffic(const Json& record) {
  Traffic traffic;
  traffic.row_bytes = count_of(record, "bytes.dispatch.row_bytes");
  traffic.a_copies = count_of(record, "bytes.dispatch.a_total_copies");
  traffic.a_self_copies = count_of(record, "bytes.dispatch.a_self_copies");
  traffic.b_copies = count_of(record, "bytes.dispatch.b_total_copies");
  traffic.b_self_copies = count_of(record, "bytes.dispatch.b_self_copies");
  traffic.d_copies = count_of(record, "bytes.dispatch.d_total_copies");
  return traffic;
}

FfnWork stored_ffn(const Json& record) {
  return {.routed_rows = count_of(record, "ffn.routed_rows"),
          .touched_experts = count_of(record, "ffn.touched_experts"),
          .flops = count_of(record, "ffn.flops"),
          .weight_bytes = count_of(record, "ffn.weight_bytes"),
          .weight_scale_bytes = count_of(record, "ffn.weight_scale_bytes")};
}

// Rows and operations of one EP rank: each row of the group costs the same. Experts it touched are
// not in a record.
std::optional<FfnWork> ffn_of_rank(const Json& record, const FfnWork& group, int ep_rank) {
  const Json* layers = find_value(record, "rows_per_rank.per_layer");
  if (layers == nullptr || !layers->is_array() || group.routed_rows <= 0) return std::nullopt;
  FfnWork work;
  for (const Json& layer : *layers) {
    const auto at = static_cast<std::size_t>(ep_rank);
    if (!layer.is_array() || at >= layer.size() || !layer[at].is_number_integer()) {
      return std::nullopt;
    }
    const auto rows = layer[at].get<std::int64_t>();
    if (rows < 0 || rows > group.routed_rows - work.routed_rows) return std::nullopt;
    work.routed_rows += rows;
  }
  work.flops = group.flops / group.routed_rows * work.routed_rows;
  return work;
}

constexpr std::int64_t kMostTokens = 1'000'000'000'000;

// As far as metrics look at it.
SweepPoint stored_point(const Json& record) {
  SweepPoint point;
  point.ep_size = static_cast<int>(count_of(record, "point.ep_size"));
  point.layers = static_cast<int>(count_of(record, "point.layers"));
  point.vary_routing = static_cast<int>(count_of(record, "point.vary_routing"));
  const std::int64_t tokens = std::min(count_of(record, "point.tokens_global"), kMostTokens);
  point.concurrency = {ConcurrencyMode::fixed_global, tokens, {}};
  point.limits = limits_of_record(record);
  if (find_text(record, "point.exchange_unit") == "rank") point.exchange_unit = ExchangeUnit::rank;
  return point;
}

// Metrics that need more than a record holds stay as they were stored.
Json metrics_of(const Json& record, const PointSummary& times, const GroupLayout& layout) {
  const std::vector<int> ranks = active_ranks(layout);
  const StageSummary& ffn = times.stages[static_cast<std::size_t>(Stage::expert_ffn)];
  const auto slowest =
      static_cast<std::size_t>(ranks.at(static_cast<std::size_t>(ffn.slowest_rank)));
  const SweepPoint point = stored_point(record);
  const Traffic traffic = stored_traffic(record);
  const FfnWork group = stored_ffn(record);
  const PointFacts facts = {
      .point = point,
      .summary = times,
      .num_groups = layout.num_groups,
      .num_active_ranks = static_cast<int>(ranks.size()),
      .traffic = traffic,
      .ffn = group,
      .slowest_rank_ffn = ffn_of_rank(record, group, layout.ep_rank_of_rank.at(slowest))};
  Json metrics = Json::object();
  const MetricCatalog& catalog = MetricCatalog::instance();
  for (const std::string& name : catalog.names()) {
    const std::optional<double> value = catalog.at(name).compute(facts);
    if (value.has_value()) metrics[name] = *value;
  }
  return metrics;
}

// Objects key by key, so that what only the target has stays.
void put_over(Json& target, const Json& source) {
  if (!target.is_object() || !source.is_object()) {
    target = source;
    return;
  }
  for (const auto& [key, value] : source.items()) put_over(target[key], value);
}

// What arrays do not tell: which iterations were disturbed, and how well clocks were aligned.
void erase_stored_facts(Json& part) {
  if (!part.is_object() || !part.contains("pass")) return;
  part.erase("order_bound_us");
  part["pass"].erase("disturbed_share");
  part["pass"].erase("undisturbed_p50_us");
}

PointSummary summarize_again(const RunData& run, const Json& record, const TimingTable& stages,
                             const GroupLayout& layout) {
  PointSummary times =
      summarize(stages, rows_of(record, layout), stored_facts(record, "all_stages"));
  const std::optional<ChainTable> chains = chain_times_of(run.dir, record);
  if (!chains) return times;
  times.chain = summarize_chain(*chains, stored_facts(record, "layer"));
  times.chain->weights = find_text(record, "layer.weights");
  return times;
}

// Warnings about times are made of times, so they are replaced too.
void put_warnings(const PointSummary& times, Json& record) {
  Json warnings = Json::array();
  if (const Json* stored = find_value(record, "warnings");
      stored != nullptr && stored->is_array()) {
    for (const Json& warning : *stored) {
      const std::string text = plain_text(&warning);
      if (!text.starts_with("aligned stages:") && !text.starts_with("chained layers:")) {
        warnings.push_back(warning);
      }
    }
  }
  for (const std::string& warning : time_warnings(times)) warnings.push_back(warning);
  record["warnings"] = std::move(warnings);
}

void replay_record(const RunData& run, Json& record) {
  const std::optional<TimingTable> stages = stage_times_of(run.dir, record);
  if (!stages) return;
  const std::string place = record_place(run.dir, record);
  const GroupLayout layout = layout_of_record(record, place);
  const std::vector<int> ranks = active_ranks(layout);
  const PointSummary times = summarize_again(run, record, *stages, layout);
  Json computed = {{"layer", layer_json(times, ranks)},
                   {"all_stages", all_stages_json(times, ranks)},
                   {"entry_skew_us", entry_skew_json(times)},
                   {"stages", stages_json(times, ranks)},
                   {"ffn_p50_us_of_rank", us_vector_json(times.ffn_p50_s_of_rank)},
                   {"metrics", metrics_of(record, times, layout)}};
  if (!times.chain) {
    computed.erase("layer");
    computed.erase("entry_skew_us");
  } else {
    erase_stored_facts(computed["layer"]);
  }
  erase_stored_facts(computed["all_stages"]);
  const Json stored = record;
  put_over(record, computed);
  put_warnings(times, record);
  if (stored == record) return;
  record["warnings"].push_back("the stored times are not those of " +
                               find_text(record, "timings_file") + ": computed ones are shown");
}

}  // namespace

RunData replay_run(RunData run) {
  for (Json& record : run.points) {
    if (has_row(record)) replay_record(run, record);
  }
  return run;
}

}  // namespace epsweep
