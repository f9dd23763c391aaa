#include <fmt/format.h>

#include "report/compare_text.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

Json side_json(const CompareSide& side) {
  Json chosen = Json::object();
  for (const AxisChoice& choice : side.choices) chosen[choice.axis] = choice.value;
  return {{"run", side.run->dir}, {"chosen", std::move(chosen)}};
}

Json differences_json(const std::vector<FieldDifference>& differences) {
  Json json = Json::array();
  for (const FieldDifference& one : differences) {
    json.push_back({{"field", one.field}, {"text", one.text}});
  }
  return json;
}

Json values_json(const SideValues& side) {
  return {{"median", side.median},
          {"low", side.interval.low},
          {"high", side.interval.high},
          {"values", side.values}};
}

Json quantity_json(const QuantityChange& quantity) {
  return {{"name", quantity.name},
          {"unit", quantity.unit},
          {"regime", quantity.regime},
          {"better", to_string(quantity.better)},
          {"outcome", quantity.rank == Rank::outcome},
          {"a", values_json(quantity.a)},
          {"b", values_json(quantity.b)},
          {"difference", quantity.difference()},
          {"relative", json_or_null(quantity.relative)},
          {"change", kChangeNames[static_cast<std::size_t>(quantity.change)]}};
}

// One side of a pair: what partners may differ in, and which records it is made of.
Json partner_json(const std::vector<const Json*>& repeats, const std::set<std::string>& free) {
  Json axes = Json::object(), indices = Json::array();
  for (const std::string& axis : free) {
    const Json* value = find_value(*repeats.front(), "point." + axis);
    axes[axis] = value != nullptr ? *value : Json(nullptr);
  }
  for (const Json* record : repeats) indices.push_back(record->at("index"));
  Json launch = Json::object();
  for (const char* key : {"world_size", "num_groups", "num_active_ranks"}) {
    const Json* value = find_value(*repeats.front(), key);
    launch[key] = value != nullptr ? *value : Json(nullptr);
  }
  return {{"axes", std::move(axes)},
          {"launch", std::move(launch)},
          {"state", find_text(*repeats.front(), "state")},
          {"indices", std::move(indices)}};
}

Json pair_json(const ComparedPair& pair, const std::set<std::string>& free) {
  Json point = pair.match.a.front()->at("point");
  for (const char* axis : {"index", "repeat", "attempt"}) point.erase(axis);
  for (const std::string& axis : free) point.erase(axis);
  Json changes = Json::array();
  for (const QuantityChange& quantity : pair.changes) changes.push_back(quantity_json(quantity));
  return {{"label", short_point_label(*pair.match.a.front())},
          {"point", std::move(point)},
          {"a", partner_json(pair.match.a, free)},
          {"b", partner_json(pair.match.b, free)},
          {"quantities", std::move(changes)}};
}

Json outcomes_json(const Comparison& comparison, Change change) {
  Json json = Json::array();
  for (const NamedChange& one : outcomes_with(comparison, change)) {
    json.push_back({{"pair", one.pair - comparison.pairs.data()},
                    {"quantity", one.quantity->name},
                    {"relative", json_or_null(one.quantity->relative)}});
  }
  return json;
}

Json lone_json(const std::vector<LonePoint>& points) {
  Json json = Json::array();
  for (const LonePoint& point : points) {
    json.push_back({{"label", short_point_label(*point.record)},
                    {"index", point.record->at("index")},
                    {"repeats", point.repeats},
                    {"state", find_text(*point.record, "state")},
                    {"why", point.why}});
  }
  return json;
}

Json check_json(const std::optional<RegressionCheck>& check) {
  if (!check.has_value()) return nullptr;
  return {{"beyond", check->limit.share},
          {"few_repeats", kFewRepeatsNames[static_cast<std::size_t>(check->limit.few_repeats)]},
          {"shown", check->shown},
          {"too_few", check->too_few},
          {"failed", check->failed()}};
}

}  // namespace

Json compare_json(const Comparison& comparison, const std::optional<RegressionCheck>& check) {
  Json pairs = Json::array();
  for (const ComparedPair& pair : comparison.pairs) {
    pairs.push_back(pair_json(pair, comparison.free));
  }
  return {{"a", side_json(comparison.a)},
          {"b", side_json(comparison.b)},
          {"free_axes", comparison.free},
          {"allowed", differences_json(comparison.allowed)},
          {"differs", differences_json(comparison.run_differences)},
          {"unknown_axes", comparison.unknown_axes},
          {"pairs", std::move(pairs)},
          {"regressions", outcomes_json(comparison, Change::worse)},
          {"improvements", outcomes_json(comparison, Change::better)},
          {"no_difference_shown", outcomes_json(comparison, Change::nothing)},
          {"too_few_repeats", outcomes_json(comparison, Change::too_few)},
          {"only_in_a", lone_json(comparison.only_in_a)},
          {"only_in_b", lone_json(comparison.only_in_b)},
          {"fail_on", check_json(check)}};
}

}  // namespace epsweep
