#include "report/replay_record.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/statistics.h"
#include "report/point_record.h"
#include "report/replay_times.h"
#include "report/summary.h"
#include "report/times_json.h"

namespace epsweep {
namespace {

// What files of this kind never hold.
void erase_cpu(Json& summary) {
  summary.erase("slowest_rank_cpu_p50_us");
  if (summary.contains("pass")) {
    for (const char* key : {"stop", "precision", "disturbed_share", "undisturbed_p50_us"}) {
      summary["pass"].erase(key);
    }
  }
}

std::string cannot_order(const char* what, double effect_s, double bound_s) {
  return fmt::format(
      "clocks cannot order: a median {} of {:.3f} us is within their bound of {:.3f} us", what,
      effect_s * 1e6, bound_s * 1e6);
}

struct RecordParts {
  const ReplayPoint& point;
  const ReplayTables& tables;
  Json reasons = Json::object();
  std::vector<std::string> warnings;
};

// Nulls for what the clocks cannot tell.
void put_order(const std::string& stage, const ExchangeSummary& exchange, Json& json,
               RecordParts& parts) {
  const std::string path = "stages." + stage + ".exchange";
  if (const auto reason = parts.tables.no_order.find(stage);
      reason != parts.tables.no_order.end()) {
    json["exchange"] = nullptr;
    parts.reasons[path] = reason->second;
    return;
  }
  const double bound_s = parts.tables.rows.order_bound_s;
  const double skew_s = exchange.skew_in_s.p50.value_or(0);
  const double transfer_s = exchange.transfer_s.p50.value_or(0);
  if (bound_s > 0 && skew_s <= bound_s) {
    for (const char* key : {"skew_in_us", "last_in_rank", "last_in_share", "wait_p50_us_of_rank"}) {
      json["exchange"][key] = nullptr;
    }
    parts.reasons[path + ".wait_p50_us_of_rank"] = cannot_order("skew", skew_s, bound_s);
  }
  if (bound_s > 0 && transfer_s <= bound_s) {
    json["exchange"]["transfer_us"] = nullptr;
    parts.reasons[path + ".transfer_us"] = cannot_order("transfer", transfer_s, bound_s);
  }
}

void put_rate(const std::string& stage, Json& json, RecordParts& parts) {
  for (const char* key : {"bytes", "letter", "window_p50_us", "aggregate_gb_per_s"}) {
    json[key] = nullptr;
  }
  const auto rate = aggregate_rate(parts.point, parts.tables, stage);
  const std::string path = "stages." + stage + ".aggregate_gb_per_s";
  if (!rate) {
    parts.reasons[path] = "no bytes";
    return;
  }
  json["bytes"] = rate->bytes;
  json["letter"] = rate->letter;
  if (rate->window_p50_s) json["window_p50_us"] = *rate->window_p50_s * 1e6;
  json["aggregate_gb_per_s"] = json_or_null(rate->gb_per_s);
  if (!rate->gb_per_s) parts.reasons[path] = rate->why_null;
}

Json stage_records(const PointSummary& times, const std::vector<int>& ranks, RecordParts& parts) {
  Json stages = Json::object();
  const Json all = stages_json(times, ranks);
  for (const std::string& stage : parts.point.stages) {
    if (stage == kWholeLayer) continue;
    const Stage place = table_place(stage);
    Json json = all.at(std::string(to_string(place)));
    json["regime"] = parts.point.regime;
    erase_cpu(json);
    const auto& exchange = times.exchange[static_cast<std::size_t>(place)];
    if (exchange.has_value()) {
      put_order(stage, *exchange, json, parts);
      put_rate(stage, json, parts);
    }
    stages[stage] = std::move(json);
  }
  return stages;
}

// All that a table holds, its spike and drift with it.
Json sum_record(const PointSummary& times, const std::vector<int>& ranks, const std::string& what,
                RecordParts& parts) {
  Json json = all_stages_json(times, ranks);
  json["regime"] = parts.point.regime;
  erase_cpu(json);
  json["pass"]["first_sample_is_spike"] = times.pass.first_over_p50.value_or(0) > kSpikeFactor;
  for (std::string warning : pass_warnings(fmt::format("{} {}", parts.point.regime, what),
                                           times.pass, times.all_stages.samples_s)) {
    if (parts.point.warmup == 0) warning += " (there was none: warmup 0)";
    parts.warnings.push_back(std::move(warning));
  }
  return json;
}

void put_times(const std::vector<int>& ranks, RecordParts& parts, Json& record) {
  if (parts.tables.stages) {
    const PointSummary times = summarize(*parts.tables.stages, parts.tables.rows);
    record["stages"] = stage_records(times, ranks, parts);
    record["all_stages"] = sum_record(times, ranks, "stages", parts);
  }
  if (parts.tables.layer) {
    record["layer"] =
        sum_record(summarize(*parts.tables.layer, parts.tables.rows), ranks, "layers", parts);
  }
  const std::size_t n = parts.point.num_iterations();
  const auto needs = [&](const char* percentile, std::size_t least) {
    if (n >= least) return;
    parts.reasons[percentile] = fmt::format("needs {} iterations, there are {}", least, n);
  };
  needs("p50_low", 6);
  needs("p90", 10);
  needs("p95", 20);
  needs("p99", 100);
}

Json transport_json(const ReplayPoint& point, RecordParts& parts, std::string& problem) {
  if (!point.expected_transport) return nullptr;
  std::vector<RankPlaceFacts> places;
  for (const ReplayRank& rank : point.ranks) {
    places.push_back({.rank = rank.rank, .group = rank.group, .host = rank.host});
  }
  const TransportCheck check =
      check_transports(*point.expected_transport, point.transports, places);
  problem = check.problem;
  const bool proven = check.pairs_unlisted == 0 && check.pairs_undecided == 0;
  if (problem.empty() && !proven) {
    parts.warnings.push_back(
        fmt::format("the label's transport is not proven: of {} pairs of ranks the log does not "
                    "show {}, and of "
                    "{} only that devices reach each other, not by what",
                    check.pairs, check.pairs_unlisted, check.pairs_undecided));
  }
  return {{"verdict", !problem.empty() ? "failed"
                      : proven         ? "passed"
                                       : "unproven"},
          {"within_host", point.expected_transport->within_host},
          {"between_hosts", point.expected_transport->between_hosts},
          {"pairs", check.pairs},
          {"pairs_wrong", check.pairs_wrong},
          {"pairs_unlisted", check.pairs_unlisted},
          {"pairs_undecided", check.pairs_undecided}};
}

void put_rows(const ReplayPoint& point, Json& record) {
  record["rows_per_rank"] = record["rows_per_expert"] = nullptr;
  if (!point.rows_per_expert.empty()) {
    record["rows_per_expert"] = row_summary_json(summarize_rows(point.rows_per_expert));
  }
  std::vector<std::int64_t> rows;
  for (const ReplayRank& rank : point.ranks) {
    if (rank.rows) rows.push_back(*rank.rows);
  }
  if (rows.size() < point.ranks.size()) return;
  record["rows_per_rank"] = row_summary_json(summarize_rows(rows));
  record["rows_per_rank"]["of_rank"] = rows;
}

std::size_t num_groups(const ReplayPoint& point) {
  std::set<int> groups;
  for (const ReplayRank& rank : point.ranks) groups.insert(rank.group);
  return groups.size();
}

}  // namespace

Json make_replay_record(const ReplayFile& file, const ReplayPoint& point) {
  std::vector<int> ranks;
  for (const ReplayRank& rank : point.ranks) ranks.push_back(rank.rank);
  const ReplayTables tables = replay_tables(point);
  RecordParts parts{.point = point, .tables = tables, .reasons = Json::object(), .warnings = {}};
  std::string problem;
  const Json transport = transport_json(point, parts, problem);
  std::string reason = problem.empty() ? "" : "transport: " + problem;
  if (point.check == "failed") reason = "the tool's own check of the results failed";

  Json record = {{"schema_version", kReplaySchemaVersion},
                 {"file", file.path},
                 {"tool", file.tool},
                 {"state", reason.empty() ? "measured" : "failed"},
                 {"reason", reason.empty() ? Json(nullptr) : Json(reason)},
                 {"point",
                  {{"name", point.name},
                   {"ep_size", point.ep_size},
                   {"repeat", point.repeat},
                   {"tokens_global", json_or_null(point.tokens_global)},
                   {"regime", point.regime},
                   {"warmup", json_or_null(point.warmup)},
                   {"iterations", point.num_iterations()},
                   {"ranks_per_row", point.ranks_per_row}}},
                 {"num_groups", num_groups(point)},
                 {"ranks", ranks},
                 {"layer", nullptr},
                 {"all_stages", nullptr},
                 {"stages", nullptr}};
  if (reason.empty()) put_times(ranks, parts, record);
  put_rows(point, record);
  record["check"] = point.check;
  record["transport_check"] = transport;
  record["null_reasons"] = parts.reasons;
  record["warnings"] = parts.warnings;
  record["notes"] = point.notes;
  return record;
}

}  // namespace epsweep
