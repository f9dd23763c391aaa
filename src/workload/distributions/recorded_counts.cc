// Expert loads from a file of recorded counts per layer and expert.
#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "workload/distributions/load_router.h"

namespace epsweep {
namespace {

struct Counts {
  std::size_t num_experts = 0;
  std::vector<std::vector<double>> layers;  // rows that are not all zero: dense layers have zeros
};

// Sums of that many stay exact enough in doubles; anything larger is not a count.
constexpr double kMaxCount = 1e15;

double read_count(const Json& value, const std::string& path, std::size_t row, std::size_t column) {
  const auto refuse = [&](const char* what) {
    throw ConfigError(fmt::format("{}: logical_count row {}, column {} (both from 0): {} {}", path,
                                  row, column, to_json_line(value), what));
  };
  if (!value.is_number()) refuse("is not a number");
  const auto count = value.get<double>();
  if (count < 0) refuse("is negative");
  if (count > kMaxCount) refuse("is too large for a count");
  return count;
}

std::vector<double> read_row(const Json& row, const std::string& path, std::size_t index) {
  if (!row.is_array() || row.empty()) {
    throw ConfigError(
        fmt::format("{}: logical_count row {} (from 0) is not a list of counts, one "
                    "for each expert",
                    path, index));
  }
  std::vector<double> counts;
  for (const Json& value : row) counts.push_back(read_count(value, path, index, counts.size()));
  return counts;
}

Counts read_counts(const std::string& path) {
  const Json root = parse_json(read_text_file(path), path);
  if (!root.is_object() || !root.contains("logical_count") || !root["logical_count"].is_array() ||
      root["logical_count"].empty()) {
    throw ConfigError(path +
                      ": expected {\"logical_count\": [[counts of a layer's experts], ...]}");
  }
  Counts counts;
  std::size_t index = 0;
  for (const Json& json : root["logical_count"]) {
    std::vector<double> row = read_row(json, path, index);
    if (index == 0) counts.num_experts = row.size();
    if (row.size() != counts.num_experts) {
      throw ConfigError(fmt::format(
          "{}: logical_count row {} (from 0) has {} columns, the rows before it have {}", path,
          index, row.size(), counts.num_experts));
    }
    const bool dense = std::all_of(row.begin(), row.end(), [](double count) { return count == 0; });
    if (!dense) counts.layers.push_back(std::move(row));
    ++index;
  }
  return counts;
}

// Each file is read once per process; many points and layers ask for it.
const Counts& counts_of(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, Counts> files;
  const std::lock_guard lock(mutex);
  const auto found = files.find(path);
  return found != files.end() ? found->second
                              : files.emplace(path, read_counts(path)).first->second;
}

TokenRouter make(const RoutingContext& context) {
  const std::string& path = context.routing->file;
  const Counts& counts = counts_of(path);
  if (counts.num_experts != static_cast<std::size_t>(context.num_experts)) {
    throw ConfigError(fmt::format("{}: counts of {} experts, the model has {}", path,
                                  counts.num_experts, context.num_experts));
  }
  const auto layer = static_cast<std::size_t>(context.layer);
  if (layer >= counts.layers.size()) {
    throw ConfigError(
        fmt::format("{}: {} rows that are not all zero, layer {} of the sweep needs "
                    "{}",
                    path, counts.layers.size(), layer, layer + 1));
  }
  return route_by_load(context, counts.layers[layer]);
}

const bool registered = DistributionCatalog::instance().add(
    {"recorded_counts",
     "loads recorded per layer and expert; layer l is the l-th row that is not all zero",
     {{"counts_file", ParamSpec::Kind::file, 0, 0, 0,
       "JSON {\"logical_count\": [layers][experts]}"}},
     make});

}  // namespace
}  // namespace epsweep
