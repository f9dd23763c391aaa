#include "report/ep_pairs.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "report/breakdown_json.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

// Axes in which points of a series differ, or that follow from those.
constexpr const char* kOfPoint[] = {"index",       "repeat", "attempt",      "ep_size",
                                    "concurrency", "tokens", "tokens_global"};

std::string series_of(const Json& record) {
  Json axes = record.value("point", Json::object());
  for (const char* key : kOfPoint) axes.erase(key);
  return plain_text(find_value(record, "run")) + to_json_line(axes);
}

std::int64_t count_at(const Json& record, const char* path) {
  return static_cast<std::int64_t>(find_number(record, path).value_or(0));
}

struct Key {
  int ep_size = 0;
  std::int64_t tokens_global = 0;
  auto operator<=>(const Key&) const = default;
};
Key key_of(const Json& record) {
  return {static_cast<int>(count_at(record, "point.ep_size")),
          count_at(record, "point.tokens_global")};
}

void add(const Json& record, PairSide& side) {
  const Key key = key_of(record);
  side.ep_size = key.ep_size;
  side.tokens_global = key.tokens_global;
  if (!has_row(record)) {
    side.why_not = find_text(record, "state") + ": " + find_text(record, "reason");
    return;
  }
  side.records.push_back(&record);
  if (auto breakdown = breakdown_of(record)) side.breakdowns.push_back(std::move(*breakdown));
}

// A load that was asked for, of one mode.
struct Load {
  std::string mode;
  std::int64_t tokens = 0;
  auto operator<=>(const Load&) const = default;
};

struct Series {
  std::map<Key, std::map<std::string, PairSide>> sides;  // by mode
  std::vector<Load> loads;                               // as they come
  std::map<Load, std::vector<Key>> asked;                // by EP size

  void ask(const Json& record) {
    const Json* tokens = find_value(record, "point.tokens");
    if (tokens == nullptr || !tokens->is_number() || find_text(record, "load_from") == "bridge") {
      return;
    }
    const Load load{find_text(record, "point.concurrency"), tokens->get<std::int64_t>()};
    if (!asked.contains(load)) loads.push_back(load);
    std::vector<Key>& keys = asked[load];
    const Key key = key_of(record);
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }

  std::optional<PairSide> measured(Key key) const {
    const auto found = sides.find(key);
    if (found == sides.end()) return std::nullopt;
    // The two modes have the same tokens on the same ranks.
    for (const auto& [mode, side] : found->second) {
      if (!side.breakdowns.empty()) return side;
    }
    return std::nullopt;
  }
};

void put_pairs(const std::string& name, const Series& series, std::vector<EpPair>& pairs) {
  for (const Load& load : series.loads) {
    std::vector<Key> keys = series.asked.at(load);
    std::ranges::sort(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      for (std::size_t j = i + 1; j < keys.size(); ++j) {
        const Key a = keys[i], b = keys[j];
        pairs.push_back({.held = fmt::format("{} {}{}", load.mode, load.tokens, name),
                         .series = name,
                         .mode = load.mode,
                         .load = load.tokens,
                         .a = series.sides.at(a).at(load.mode),
                         .b = series.sides.at(b).at(load.mode),
                         .wide_low = series.measured({b.ep_size, a.tokens_global}),
                         .narrow_high = series.measured({a.ep_size, b.tokens_global})});
      }
    }
  }
}

// What differs between the series of the records: those values of each, " zipf, round_robin".
std::map<std::string, std::string> names_of(const std::map<std::string, const Json*>& first_of) {
  std::map<std::string, std::string> names;
  std::map<std::string, std::vector<std::string>> values;
  for (const auto& [series, record] : first_of) {
    names[series] = "";
    const Json axes = record->value("point", Json::object());
    for (const auto& [axis, value] : axes.items()) {
      if (std::ranges::find(kOfPoint, axis) != std::end(kOfPoint)) continue;
      values[axis].push_back(axis == "routing" ? routing_text(*record) : plain_text(&value));
    }
    if (const Json* run = find_value(*record, "run")) values["run"].push_back(plain_text(run));
  }
  for (const auto& [axis, of_series] : values) {
    if (of_series.size() != first_of.size() ||
        std::ranges::all_of(of_series, [&](const std::string& v) { return v == of_series[0]; })) {
      continue;
    }
    std::size_t i = 0;
    for (const auto& [series, record] : first_of) names[series] += ", " + of_series[i++];
  }
  return names;
}

}  // namespace

Corners EpPair::corners() const {
  Corners corners{.a = a.breakdowns,
                  .b = b.breakdowns,
                  .wide_low = {},
                  .narrow_high = {},
                  .same_load = a.tokens_global == b.tokens_global};
  if (corners.same_load) return corners;
  if (wide_low) corners.wide_low = wide_low->breakdowns;
  if (narrow_high) corners.narrow_high = narrow_high->breakdowns;
  return corners;
}

std::vector<EpPair> ep_pairs(const std::vector<const Json*>& records) {
  std::vector<std::string> order;
  std::map<std::string, Series> all;
  std::map<std::string, const Json*> first_of;
  for (const Json* record : records) {
    // A second look at a slow load is no repeat.
    if (find_number(*record, "point.attempt").value_or(1) > 1) continue;
    if (copies_locally(*record)) continue;
    const std::string series = series_of(*record);
    if (first_of.try_emplace(series, record).second) order.push_back(series);
    add(*record, all[series].sides[key_of(*record)][find_text(*record, "point.concurrency")]);
    all[series].ask(*record);
  }
  const std::map<std::string, std::string> names = names_of(first_of);
  std::vector<EpPair> pairs;
  for (const std::string& series : order) put_pairs(names.at(series), all.at(series), pairs);
  return pairs;
}

std::vector<EpPair> ep_pairs(const std::vector<Json>& records) {
  std::vector<const Json*> pointers;
  for (const Json& record : records) pointers.push_back(&record);
  return ep_pairs(pointers);
}

}  // namespace epsweep
