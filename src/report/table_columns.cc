#include "report/table_columns.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/stage.h"
#include "report/arrival.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

using Cell = std::function<std::string(const TableRow&)>;

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

Cell plain(const std::string& path) {
  return [path](const TableRow& row) { return or_dash(plain_text(find_value(*row.record, path))); };
}
Cell number(const std::string& path) {
  return [path](const TableRow& row) { return short_number(find_number(*row.record, path)); };
}
Cell percent(const std::string& path) {
  return [path](const TableRow& row) { return short_percent(find_number(*row.record, path)); };
}

double routings_of(const Json& record) {
  return find_number(record, "point.layers").value_or(1) *
         find_number(record, "point.vary_routing").value_or(1);
}

Cell megabytes_per_layer(const std::string& letter) {
  return [path = "bytes.dispatch." + letter + "_bytes"](const TableRow& row) {
    std::optional<double> bytes = find_number(*row.record, path);
    if (bytes.has_value()) *bytes /= routings_of(*row.record) * 1e6;
    return short_number(bytes);
  };
}

// Of both grouped GEMMs; absent unless both have it.
std::optional<double> gemm_sum(const Json& record, const std::string& key) {
  const std::optional<double> gate_up = find_number(record, "m_distribution.gate_up." + key);
  const std::optional<double> down = find_number(record, "m_distribution.down." + key);
  if (!gate_up.has_value() || !down.has_value()) return std::nullopt;
  return *gate_up + *down;
}

std::string calls_text(const TableRow& row) {
  std::optional<double> calls = gemm_sum(*row.record, "kernel_calls");
  if (!calls.has_value()) return "-";
  *calls /= routings_of(*row.record);
  return *calls == std::floor(*calls) ? fmt::format("{:.0f}", *calls) : short_number(*calls);
}

// Rows beyond the routed ones, in percent of these.
Cell padding(const std::string& key) {
  return [key](const TableRow& row) -> std::string {
    const std::optional<double> routed = gemm_sum(*row.record, "routed_rows");
    const std::optional<double> rows = gemm_sum(*row.record, key);
    if (!routed.has_value() || !rows.has_value() || *routed <= 0) return "-";
    return short_percent((*rows - *routed) / *routed);
  };
}

// Of the rank that has most, in MB.
std::string workspace_text(const TableRow& row) {
  std::optional<double> bytes = gemm_sum(*row.record, "workspace_bytes");
  if (bytes.has_value()) *bytes /= 1e6;
  return short_number(bytes);
}

// "13", or "12-13" where ranks differ.
std::string tokens_per_rank_text(const TableRow& row) {
  const Json* tokens = find_value(*row.record, "tokens_per_rank");
  if (tokens == nullptr || !tokens->is_array() || tokens->empty()) return "-";
  std::vector<std::int64_t> counts;
  for (const Json& count : *tokens) {
    if (!count.is_number_integer()) return "-";
    counts.push_back(count.get<std::int64_t>());
  }
  const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
  return *low == *high ? std::to_string(*low) : fmt::format("{}-{}", *low, *high);
}

std::string num_idle_text(const TableRow& row) {
  const Json* idle = find_value(*row.record, "idle_ranks");
  return idle != nullptr && idle->is_array() ? std::to_string(idle->size()) : "-";
}

// "5 (83%)"; a rank that is slowest half of the time or less is not "the" slow one.
Cell slowest_rank(const std::string& part) {
  return [part](const TableRow& row) -> std::string {
    const std::optional<double> share = find_number(*row.record, part + ".slowest_rank_share");
    if (!share.has_value()) return "-";
    return fmt::format("{} ({:.0f}%){}",
                       plain_text(find_value(*row.record, part + ".slowest_rank")), *share * 100,
                       *share <= 0.5 ? " alternates" : "");
  };
}

// "98.1-103"; a dash with fewer than 6 samples.
std::string median_interval_text(const TableRow& row) {
  const auto low = find_number(*row.record, "layer.slowest_us.p50_low");
  const auto high = find_number(*row.record, "layer.slowest_us.p50_high");
  return low && high ? fmt::format("{}-{}", short_number(*low), short_number(*high)) : "-";
}

TableLayout latency_layout() {
  return {
      "Latency and throughput",
      "layer: us per layer, layers back to back (chained), slowest rank inside each chain; 95 %: "
      "interval of its median; stages: sum of the slowest ranks' stages started together "
      "(aligned), us; cpu: us the slowest rank computed in them; /rank: ranks in groups; GB/s of "
      "touched weights; roof: ffn's % of its roofline; slowest: world rank (how often)",
      {{{"layer p50"}, number("layer.slowest_us.p50")},
       {{"95 %"}, median_interval_text},
       {{"p90"}, number("layer.slowest_us.p90")},
       {{"p99"}, number("layer.slowest_us.p99")},
       {{"stages"}, number("all_stages.slowest_us.p50")},
       {{"cpu"}, number("all_stages.slowest_rank_cpu_p50_us")},
       {{"tok/s"}, number("metrics.tokens_per_s")},
       {{"tok/s/rank"}, number("metrics.tokens_per_s_per_rank")},
       {{"GFLOP/s/rank"}, number("metrics.ffn_gflop_per_s_per_rank")},
       {{"GB/s/rank"}, number("metrics.ffn_weight_gb_per_s_per_rank")},
       {{"roof %"}, percent("metrics.ffn_roofline_share")},
       {{"groups"}, plain("num_groups")},
       {{"idle"}, num_idle_text},
       {{"slowest"}, slowest_rank("layer")}}};
}

// With the letter of the copies that were sent.
std::string dispatch_rate_text(const TableRow& row) {
  for (const char* letter : {"a", "b"}) {
    const auto rate = find_number(
        *row.record, fmt::format("metrics.dispatch_{}_remote_gb_per_s_per_rank", letter));
    if (rate.has_value())
      return fmt::format("{} {}", short_number(*rate), *letter == 'a' ? 'A' : 'B');
  }
  return "-";
}

TableLayout stage_layout() {
  TableLayout layout = {
      "Stages",
      "aligned, p50 us per layer: of exchanges the transfer (last rank in to last rank out), else "
      "the rank slowest in that stage; ffn: that rank, us it computed, and the fastest one; exch, "
      "ffn: % of their sum; GB/s: remote dispatch per rank, letter of what is sent",
      {}};
  for (std::size_t s = 0; s < kStageNames.size(); ++s) {
    const std::string stage(kStageNames[s]);
    const char* what =
        is_exchange(static_cast<Stage>(s)) ? ".exchange.transfer_us.p50" : ".slowest_us.p50";
    layout.columns.push_back({{stage}, number("stages." + stage + what)});
  }
  layout.columns.push_back({{"ffn rank"}, slowest_rank("stages.expert_ffn")});
  layout.columns.push_back({{"ffn cpu"}, number("stages.expert_ffn.slowest_rank_cpu_p50_us")});
  layout.columns.push_back({{"ffn min"}, number("stages.expert_ffn.fastest_rank_p50_us")});
  layout.columns.push_back({{"exch %"}, percent("metrics.exchange_share")});
  layout.columns.push_back({{"ffn %"}, percent("metrics.ffn_share")});
  layout.columns.push_back({{"GB/s"}, dispatch_rate_text});
  return layout;
}

TableLayout rows_layout() {
  return {
      "Rows per expert (M) and dispatch bytes",
      "empty, pad: %; stored: padding in memory, %; rank max/mean: rows per rank; calls: both "
      "GEMMs; work: a rank's kernel memory; MB: A per assignment, B per rank, C per domain, D per "
      "remote rank, E per remote domain; calls and MB of a group and layer",
      {{{"M mean"}, number("rows_per_expert.mean")},
       {{"P10"}, plain("rows_per_expert.p10")},
       {{"median"}, plain("rows_per_expert.median")},
       {{"P90"}, plain("rows_per_expert.p90")},
       {{"max"}, plain("rows_per_expert.max")},
       {{"max/mean"}, number("rows_per_expert.max_over_mean")},
       {{"empty"}, percent("rows_per_expert.empty_fraction")},
       {{"rank max/mean"}, number("rows_per_rank.max_over_mean")},
       {{"calls"}, calls_text},
       {{"pad"}, padding("computed_rows")},
       {{"stored"}, padding("stored_rows")},
       {{"work MB"}, workspace_text},
       {{"A self"}, megabytes_per_layer("a_self")},
       {{"A remote"}, megabytes_per_layer("a_remote")},
       {{"B"}, megabytes_per_layer("b_total")},
       {{"C"}, megabytes_per_layer("c_total")},
       {{"D"}, megabytes_per_layer("d_total")},
       {{"E"}, megabytes_per_layer("e_total")}}};
}

// "nccl_alltoall(capacity_factor=1.25)".
std::string transport_text(const TableRow& row) {
  const std::string name = or_dash(plain_text(find_value(*row.record, "point.transport")));
  const auto factor = find_number(*row.record, "point.capacity_factor");
  return factor ? fmt::format("{}(capacity_factor={})", name, *factor) : name;
}

std::vector<Axis> make_axes() {
  std::vector<Axis> axes = {
      {"routing", [](const TableRow& row) { return or_dash(routing_text(*row.record)); }},
      {"placement", [](const TableRow& row) { return or_dash(placement_text(*row.record)); }}};
  for (const std::string name : {"redundant_slots", "exchange_unit"}) {
    axes.push_back({name, plain("point." + name)});
  }
  axes.push_back({"transport", transport_text});
  for (const std::string name :
       {"launch", "grouped_gemm", "dtype", "mapping", "groups", "weight_cache", "layers",
        "vary_routing", "warmup", "iterations", "seed", "step", "repeat", "attempt"}) {
    axes.push_back({name, plain("point." + name)});
  }
  axes.push_back({"run", [](const TableRow& row) { return row.dir; }});
  return axes;
}

}  // namespace

const std::vector<Axis>& table_axes() {
  static const std::vector<Axis> axes = make_axes();
  return axes;
}

bool is_repeat_axis(const Axis& axis) {
  return axis.name == "repeat" || axis.name == "attempt" || axis.name == "run";
}

std::string row_mark(const Json& record) {
  std::string mark;
  if (is_simulated(record)) mark += 'S';
  if (is_predicted(record)) mark += has_measured_compute(record) ? 'V' : 'P';
  if (copies_locally(record)) mark += 'L';
  const Json* oversubscribed = find_value(record, "load.oversubscribed");
  if (oversubscribed != nullptr && *oversubscribed == true) mark += '!';
  if (find_number(record, "load.ranks_per_device").value_or(0) > 1) mark += '#';
  if (find_number(record, "load.foreign_load").value_or(0) > kForeignLoadLimit) mark += '~';
  return mark;
}

std::vector<TableColumn> key_columns() {
  return {{{"", Align::left}, [](const TableRow& row) { return row_mark(*row.record); }},
          {{"EP"}, plain("point.ep_size")},
          {{"tok/group"}, plain("point.tokens_global")},
          {{"tok/rank"}, tokens_per_rank_text}};
}

std::vector<TableLayout> table_layouts() {
  return {latency_layout(), stage_layout(), rows_layout()};
}

}  // namespace epsweep
