#include "report/frontier_records.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "report/record_access.h"
#include "report/record_limits.h"
#include "report/series_end.h"

namespace epsweep {
namespace {

// What all curves of a frontier share.
std::string frontier_key(const Json& record) {
  Json axes = record.at("point");
  for (const char* key : {"index", "tokens", "tokens_global", "ep_size", "repeat", "attempt"}) {
    axes.erase(key);
  }
  return to_json_line(axes);
}

// Of one repeat; empty for a load that has no times.
std::vector<LoadTpot> loads_of_rows(const std::vector<TableRow>& rows) {
  std::map<std::int64_t, std::vector<double>> attempts;
  for (const TableRow& row : rows) {
    const auto tpot_ms = find_number(*row.record, "metrics.tpot_ms");
    const auto tokens = find_number(*row.record, "point.tokens_global");
    if (!has_row(*row.record) || !tpot_ms || !tokens || !(*tokens > 0)) continue;
    attempts[static_cast<std::int64_t>(*tokens)].push_back(*tpot_ms * 1e-3);
  }
  std::vector<LoadTpot> loads;
  for (const auto& [tokens, tpot_s] : attempts)
    loads.push_back({tokens, nearest_rank(tpot_s, 0.5)});
  return loads;
}

RepeatCurve repeat_curve(const std::vector<TableRow>& rows) {
  const SeriesEnd end = series_end(rows);
  return {.loads = loads_of_rows(rows), .admitted = end.admitted, .stopped_by = end.stopped_by};
}

// [frontier][EP size][repeat]
using RowsOfRepeat = std::vector<TableRow>;
struct RowsOfFrontier {
  TableRow example;
  std::map<int, std::map<std::string, RowsOfRepeat>> rows;
};

}  // namespace

std::vector<Frontier> frontiers_of(const std::vector<TableRow>& rows) {
  std::vector<std::string> order;
  std::map<std::string, RowsOfFrontier> grouped;
  for (const TableRow& row : rows) {
    const Json& record = *row.record;
    if (!limits_of_record(record) || is_counterfactual(record)) continue;
    if (find_text(record, "point.concurrency") == "listed") continue;
    const std::string key = frontier_key(record);
    if (!grouped.contains(key)) order.push_back(key);
    RowsOfFrontier& group = grouped.try_emplace(key, RowsOfFrontier{row, {}}).first->second;
    const auto ep_size = static_cast<int>(find_number(record, "point.ep_size").value_or(0));
    group.rows[ep_size][series_key_of(row)].push_back(row);
  }
  std::vector<Frontier> frontiers;
  for (const std::string& key : order) {
    const RowsOfFrontier& group = grouped.at(key);
    Frontier& frontier = frontiers.emplace_back();
    frontier.example = group.example;
    frontier.limits = *limits_of_record(*group.example.record);
    for (const auto& [ep_size, repeats] : group.rows) {
      FrontierCurve& curve = frontier.curves.emplace_back();
      curve.ep_size = ep_size;
      for (const auto& [series, of_repeat] : repeats) {
        curve.repeats.push_back(repeat_curve(of_repeat));
      }
    }
  }
  return frontiers;
}

std::vector<FrontierGain> gains_of(const Frontier& frontier) {
  std::optional<double> objective;
  if (const auto objective_s = frontier.limits.objective_s()) objective = 1 / *objective_s;
  std::vector<FrontierGain> gains;
  for (std::size_t i = 1; i < frontier.curves.size(); ++i) {
    const auto more = gains_between(frontier.curves.front(), frontier.curves[i], objective);
    gains.insert(gains.end(), more.begin(), more.end());
  }
  return gains;
}

}  // namespace epsweep
