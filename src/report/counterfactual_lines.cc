#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "report/counterfactuals.h"
#include "report/record_access.h"
#include "report/text_table.h"

namespace epsweep {
namespace {

// What a line begins with, or what the two have in common anyway.
constexpr const char* kSaid[] = {"index",       "repeat", "attempt",      "ep_size",
                                 "concurrency", "tokens", "tokens_global"};

std::string axis_text(const Json& record, const std::string& axis) {
  if (axis == "routing") return routing_text(record);
  if (axis == "placement") return placement_text(record);
  return plain_text(find_value(record, "point." + axis));
}

// "EP8 fixed_global 256, zipf, pairwise": beside EP size and load what tells the points apart.
std::vector<std::string> point_names(const std::vector<Counterfactual>& all) {
  std::map<std::string, std::vector<std::string>> values;
  for (const Counterfactual& one : all) {
    for (const auto& [axis, value] : one.point->at("point").items()) {
      if (std::ranges::find(kSaid, axis) != std::end(kSaid)) continue;
      values[axis].push_back(axis_text(*one.point, axis));
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Json& record = *all[i].point;
    names.push_back(fmt::format("EP{} {} {}", plain_text(find_value(record, "point.ep_size")),
                                find_text(record, "point.concurrency"),
                                plain_text(find_value(record, "point.tokens"))));
    for (const auto& [axis, texts] : values) {
      const bool varies = texts.size() == all.size() &&
                          std::ranges::any_of(texts, [&](const auto& t) { return t != texts[0]; });
      if (varies) names.back() += ", " + texts[i];
    }
  }
  return names;
}

std::string value_of(const Json& record, Replaced replaced) {
  if (replaced == Replaced::routing) return routing_text(record);
  return replaced == Replaced::placement ? placement_text(record)
                                         : find_text(record, "point.transport");
}

double median(const std::vector<double>& values) {
  return nearest_rank(values, 0.5);
}

std::string difference_cell(const Counterfactual& one) {
  const auto interval = one.interval();
  const std::string text = fmt::format("{:+.1f}", median(one.differences_us()));
  if (!interval) return text;
  return fmt::format("{} [{:+.1f}, {:+.1f}]", text, interval->low, interval->high);
}

// Repeats of both, not in pairs: the same rule as for EP sizes.
const char* shown_cell(const Counterfactual& one) {
  switch (difference_between(one.point_us, one.instead_us).shown) {
    case Shown::nothing:
      return "no difference shown";
    case Shown::too_few:
      return "more repeats are needed";
    case Shown::faster:
    case Shown::slower:
      break;
  }
  return "";
}

std::string exchange_cell(const Counterfactual& one) {
  if (one.point_exchange_us.empty()) return "-";
  return fmt::format("{} -> {}", short_number(median(one.point_exchange_us)),
                     short_number(median(one.instead_exchange_us)));
}

Json copy_of(const Json& record, const char* path) {
  const Json* value = find_value(record, path);
  return value == nullptr ? Json(nullptr) : *value;
}

Json interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return Json::array({interval->low, interval->high});
}

}  // namespace

std::string counterfactuals_text(const std::vector<TableRow>& rows) {
  const std::vector<Counterfactual> all = counterfactuals_of(rows);
  if (all.empty()) return "";
  const std::vector<std::string> names = point_names(all);
  TextTable table;
  table.columns = {{"point", Align::left},
                   {"replaced", Align::left},
                   {"by", Align::left},
                   {"layer"},
                   {"then"},
                   {"difference", Align::left},
                   {"counts + dispatch + combine", Align::left},
                   {"", Align::left}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Counterfactual& one = all[i];
    table.rows.push_back(
        {names[i],
         fmt::format("{} {}", kReplacedNames[static_cast<std::size_t>(one.replaced)],
                     value_of(*one.point, one.replaced)),
         value_of(*one.instead, one.replaced), short_number(median(one.point_us)),
         short_number(median(one.instead_us)), difference_cell(one), exchange_cell(one),
         shown_cell(one)});
  }
  return "\nCounterfactuals (layer p50, chained, us, median of repeats, as it is and with one "
         "thing replaced; difference of each repeat [their spread]; transfers aligned, us: what "
         "the exchange costs beyond them is waiting; copies read rows that no cache has, so EP1, "
         "which exchanges with itself, shows what copying costs more)\n" +
         render(table);
}

Json counterfactuals_json(const std::vector<Json>& records) {
  std::vector<TableRow> rows;
  for (const Json& record : records) rows.push_back({&record, ""});
  const std::vector<Counterfactual> all = counterfactuals_of(rows);
  const std::vector<std::string> names = point_names(all);
  Json list = Json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Counterfactual& one = all[i];
    const auto exchange_json = [](const std::vector<double>& us) {
      return us.empty() ? Json(nullptr) : Json(median(us));
    };
    const auto shown = difference_between(one.point_us, one.instead_us).shown;
    list.push_back({{"point", names[i]},
                    {"ep_size", copy_of(*one.point, "point.ep_size")},
                    {"replaced", kReplacedNames[static_cast<std::size_t>(one.replaced)]},
                    {"value", value_of(*one.point, one.replaced)},
                    {"by", value_of(*one.instead, one.replaced)},
                    {"index", copy_of(*one.point, "index")},
                    {"by_index", copy_of(*one.instead, "index")},
                    {"num_repeats", one.point_us.size()},
                    {"layer_p50_us", one.point_us},
                    {"by_layer_p50_us", one.instead_us},
                    {"difference_us", median(one.differences_us())},
                    {"difference_interval_us", interval_json(one.interval())},
                    {"shown", kShownNames[static_cast<std::size_t>(shown)]},
                    {"exchange_transfer_us", exchange_json(one.point_exchange_us)},
                    {"by_exchange_transfer_us", exchange_json(one.instead_exchange_us)}});
  }
  return list;
}

}  // namespace epsweep
