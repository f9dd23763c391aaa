// SGLang's expert distribution recorder, written as JSON.
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "workload/recordings/counts.h"

namespace epsweep {
namespace {

using Rows = std::vector<CountsRow>;

struct Place {
  const std::string& file;
  std::string step;  // "step 3, " where there are steps
};

double read_count(const Json& value, const Place& place, std::size_t row, std::size_t column) {
  std::string problem = "is not a number";
  if (value.is_number()) problem = count_problem(value.get<double>());
  if (problem.empty()) return value.get<double>();
  throw ConfigError(fmt::format("{}: logical_count {}row {}, column {} (all from 0): {} {}",
                                place.file, place.step, row, column, json_excerpt(value), problem));
}

std::vector<double> read_row(const Json& row, const Place& place, std::size_t index) {
  if (!row.is_array() || row.empty()) {
    throw ConfigError(fmt::format(
        "{}: logical_count {}row {} (from 0) is not a list of counts, one for each expert",
        place.file, place.step, index));
  }
  std::vector<double> counts;
  for (const Json& value : row) counts.push_back(read_count(value, place, index, counts.size()));
  return counts;
}

Rows read_rows(const Json& layers, const Place& place) {
  if (!layers.is_array() || layers.empty()) {
    throw ConfigError(
        fmt::format("{}: logical_count {}is not a list of layers", place.file, place.step));
  }
  Rows rows;
  for (const Json& json : layers) {
    std::vector<double> counts = read_row(json, place, rows.size());
    if (!rows.empty() && counts.size() != rows.front().counts.size()) {
      throw ConfigError(fmt::format(
          "{}: logical_count {}row {} (from 0) has {} columns, the rows before it have {}",
          place.file, place.step, rows.size(), counts.size(), rows.front().counts.size()));
    }
    rows.push_back({static_cast<std::int64_t>(rows.size()), std::move(counts)});
  }
  return rows;
}

void add_rows(const Rows& rows, const Place& place, Rows& sum) {
  if (rows.size() != sum.size() || rows.front().counts.size() != sum.front().counts.size()) {
    throw ConfigError(fmt::format("{}: logical_count {}has {} x {} counts, step 0 has {} x {}",
                                  place.file, place.step, rows.size(), rows.front().counts.size(),
                                  sum.size(), sum.front().counts.size()));
  }
  for (std::size_t row = 0; row < sum.size(); ++row) {
    for (std::size_t e = 0; e < sum[row].counts.size(); ++e) {
      sum[row].counts[e] += rows[row].counts[e];
    }
  }
}

bool has_steps(const Json& logical_count) {
  const Json& first = logical_count.front();
  return first.is_array() && !first.empty() && first.front().is_array();
}

}  // namespace

RecordedCounts read_sglang_counts(std::string_view text, const std::string& where, const Cut& cut) {
  const Json root = parse_json(text, where);
  if (!root.is_object() || !root.contains("logical_count") || !root["logical_count"].is_array() ||
      root["logical_count"].empty()) {
    throw ConfigError(where +
                      ": expected {\"logical_count\": [[counts of a layer's experts], ...]}");
  }
  const Json& logical_count = root["logical_count"];
  if (!has_steps(logical_count)) {
    if (!cut.everything()) {
      throw ConfigError(where +
                        ": holds one sum over all steps, so skip_iterations and max_iterations "
                        "cannot choose among them");
    }
    return counts_of_rows(read_rows(logical_count, {where, ""}));
  }
  const auto num_steps = static_cast<std::int64_t>(logical_count.size());
  const CutRange range = cut_range(cut, num_steps, where, "iterations");
  // All steps are checked, also those that are not added.
  Rows sum;
  std::int64_t step = 0;
  for (const Json& layers : logical_count) {
    const Place place{where, fmt::format("step {}, ", step)};
    Rows rows = read_rows(layers, place);
    if (step == 0) {
      sum = rows;
      for (CountsRow& row : sum) row.counts.assign(row.counts.size(), 0);
    }
    const bool taken = step >= range.begin && step < range.end;
    if (!taken) {
      for (CountsRow& row : rows) row.counts.assign(row.counts.size(), 0);
    }
    add_rows(rows, place, sum);
    ++step;
  }
  RecordedCounts counts = counts_of_rows(std::move(sum));
  counts.notes.insert(counts.notes.begin(), {RoutingNote::Kind::note,
                                             fmt::format("sum over steps {} to {} of {}",
                                                         range.begin, range.end - 1, num_steps)});
  return counts;
}

}  // namespace epsweep
