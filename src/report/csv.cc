#include "report/csv.h"

#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/stage.h"
#include "base/text.h"
#include "report/arrival.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

struct CsvColumn {
  std::string name;
  std::function<std::string(const Json&)> cell;
};

CsvColumn at_path(const std::string& name, const std::string& path) {
  return {name, [path](const Json& record) { return plain_text(find_value(record, path)); }};
}

void add_group(const std::string& prefix, const std::string& path,
               const std::vector<std::string>& keys, std::vector<CsvColumn>& columns) {
  for (const std::string& key : keys) {
    columns.push_back(at_path(prefix + key, path.empty() ? key : fmt::format("{}.{}", path, key)));
  }
}

void add_identity(std::vector<CsvColumn>& columns) {
  add_group("", "", {"index", "id", "state", "reason"}, columns);
  columns.push_back(at_path("model", "point.model.name"));
  add_group("", "point", {"ep_size", "concurrency", "tokens", "tokens_global"}, columns);
  columns.push_back({"routing", routing_text});
  columns.push_back({"placement", placement_text});
  add_group("", "point",
            {"redundant_slots", "exchange_unit", "transport", "capacity_factor", "launch",
             "grouped_gemm", "dtype", "mapping", "groups", "weight_cache", "layers", "vary_routing",
             "warmup", "iterations", "repeat", "attempt", "seed", "step"},
            columns);
  add_group("", "", {"load_from", "world_size", "num_groups", "num_active_ranks", "idle_ranks"},
            columns);
  columns.push_back(at_path("routing_checksum", "routing_checksum"));
}

void add_stage(const std::string& stage, std::vector<CsvColumn>& columns) {
  const std::string at = "stages." + stage;
  for (const char* p : {"p50", "p90", "p99"}) {
    columns.push_back(at_path(fmt::format("{}_{}_us", stage, p), at + ".slowest_us." + p));
  }
  add_group(
      stage + "_", at,
      {"slowest_rank", "slowest_rank_share", "fastest_rank_p50_us", "slowest_rank_cpu_p50_us"},
      columns);
}

void add_exchange(const std::string& stage, std::vector<CsvColumn>& columns) {
  const std::string at = "stages." + stage + ".exchange";
  columns.push_back(at_path(stage + "_transfer_p50_us", at + ".transfer_us.p50"));
  columns.push_back(at_path(stage + "_skew_in_p50_us", at + ".skew_in_us.p50"));
  add_group(stage + "_", at, {"last_in_rank", "last_in_share"}, columns);
}

// Of a layer, or of the sum of its stages.
void add_whole(const std::string& part, std::vector<CsvColumn>& columns) {
  for (const char* p : {"p50", "p50_low", "p50_high", "p90", "p95", "p99", "min", "max"}) {
    columns.push_back(
        at_path(fmt::format("{}_{}_us", part, p), fmt::format("{}.slowest_us.{}", part, p)));
  }
  columns.push_back(at_path(part + "_num_samples", part + ".slowest_us.num_samples"));
  add_group(part + "_", part,
            {"regime", "first_sample_us", "slowest_rank", "slowest_rank_share",
             "fastest_rank_p50_us", "max_of_means_us"},
            columns);
  add_group(part + "_", part + ".pass",
            {"stop", "precision", "disturbed_share", "undisturbed_p50_us", "drift"}, columns);
}

void add_times(std::vector<CsvColumn>& columns) {
  add_whole("layer", columns);
  add_group("layer_", "layer", {"chain_layers", "convergence", "weights"}, columns);
  add_whole("all_stages", columns);
  columns.push_back(at_path("entry_skew_us", "entry_skew_us"));
  for (std::size_t s = 0; s < kStageNames.size(); ++s) {
    const std::string stage(kStageNames[s]);
    add_stage(stage, columns);
    if (is_exchange(static_cast<Stage>(s))) add_exchange(stage, columns);
  }
}

// Of all records and not of this build's catalog: files of other builds keep all their metrics.
void add_metrics(const std::vector<Json>& records, std::vector<CsvColumn>& columns) {
  std::set<std::string> names;
  for (const Json& record : records) {
    const Json* metrics = find_value(record, "metrics");
    if (metrics == nullptr || !metrics->is_object()) continue;
    for (const auto& [name, value] : metrics->items()) names.insert(name);
  }
  for (const CsvColumn& column : columns) names.erase(column.name);  // layer_p50_us is both
  for (const std::string& name : names) columns.push_back(at_path(name, "metrics." + name));
}

void add_work(std::vector<CsvColumn>& columns) {
  for (const std::string rows : {"rows_per_expert", "rows_per_rank"}) {
    add_group(rows + "_", rows,
              {"mean", "min", "p10", "median", "p90", "max", "max_over_mean", "empty_fraction"},
              columns);
  }
  add_group("", "bytes.dispatch", {"row_bytes"}, columns);
  for (const std::string letter :
       {"a_total", "a_self", "a_remote", "b_total", "b_self", "b_remote", "d_total", "a_intra",
        "a_inter", "b_intra", "b_inter", "c_total", "e_total"}) {
    columns.push_back(
        at_path("dispatch_" + letter + "_bytes", "bytes.dispatch." + letter + "_bytes"));
  }
  for (const char* key : {"sent_copies", "sent_bytes", "metadata_bytes", "padding_bytes"}) {
    columns.push_back(
        at_path(fmt::format("dispatch_{}", key), fmt::format("bytes.dispatch.{}", key)));
  }
  add_group("ffn_", "ffn",
            {"routed_rows", "touched_experts", "flops", "weight_bytes", "weight_scale_bytes"},
            columns);
  for (const std::string gemm : {"gate_up", "down"}) {
    add_group(gemm + "_", "m_distribution." + gemm,
              {"n", "k", "kernel_calls", "computed_rows", "stored_rows", "workspace_bytes"},
              columns);
  }
  add_group("memory_", "memory", {"weight_bytes", "activation_bytes", "total_bytes"}, columns);
}

std::string warnings_text(const Json& record) {
  const Json* warnings = find_value(record, "warnings");
  if (warnings == nullptr || !warnings->is_array()) return "";
  std::vector<std::string> texts;
  for (const Json& warning : *warnings) texts.push_back(plain_text(&warning));
  return join(texts, "; ");
}

std::vector<CsvColumn> make_columns(const std::vector<Json>& records) {
  std::vector<CsvColumn> columns;
  const auto names_run = [](const Json& record) { return record.contains("run"); };
  if (std::any_of(records.begin(), records.end(), names_run)) {
    columns.push_back(at_path("run", "run"));
  }
  add_identity(columns);
  add_times(columns);
  add_metrics(records, columns);
  add_work(columns);
  add_group("check_", "check", {"verdict", "worst_error", "tolerance", "tokens_checked", "when"},
            columns);
  add_group("load_", "load",
            {"ranks", "cores", "oversubscribed", "ranks_per_device", "foreign_load"}, columns);
  for (const std::string phase : {"prepare", "check", "warmup", "flush", "measured", "align"}) {
    columns.push_back(at_path("harness_" + phase + "_s", "harness_s." + phase));
  }
  add_group("", "", {"timings_file", "chains_file"}, columns);
  add_group("clock_", "clock",
            {"domains", "worst_bound_us", "worst_drift_ppm", "worst_drift_bound_ppm"}, columns);
  columns.push_back({"warnings", warnings_text});
  return columns;
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string points_csv(const std::vector<Json>& records) {
  const std::vector<CsvColumn> columns = make_columns(records);
  std::string text;
  const auto add_field = [&text, &columns](std::size_t i, std::string_view field) {
    text += csv_field(field);
    text += i + 1 < columns.size() ? ',' : '\n';
  };
  for (std::size_t i = 0; i < columns.size(); ++i) add_field(i, columns[i].name);
  for (const Json& record : records) {
    for (std::size_t i = 0; i < columns.size(); ++i) add_field(i, columns[i].cell(record));
  }
  return text;
}

}  // namespace epsweep
