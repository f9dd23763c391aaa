#include "report/counterfactuals.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "report/breakdown_json.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

// The axes that follow from what is replaced.
const std::vector<const char*>& axes_of(Replaced replaced) {
  static const std::vector<const char*> routing = {"routing"};
  static const std::vector<const char*> placement = {"placement", "redundant_slots",
                                                     "placement_map", "fit_on"};
  static const std::vector<const char*> exchange = {"transport", "capacity_factor"};
  if (replaced == Replaced::routing) return routing;
  return replaced == Replaced::placement ? placement : exchange;
}

// What a record has in common with those in which only that is replaced.
std::string shared_key(const TableRow& row, Replaced replaced) {
  Json axes = row.record->at("point");
  axes.erase("index");
  for (const char* axis : axes_of(replaced)) axes.erase(axis);
  return kReplacedNames[static_cast<std::size_t>(replaced)] + row.dir +
         plain_text(find_value(*row.record, "run")) + to_json_line(axes);
}

// The same of a point and its repeats, with everything that tells points apart.
std::string repeats_key(const Json& record) {
  Json axes = record.at("point");
  axes.erase("index");
  axes.erase("repeat");
  return plain_text(find_value(record, "run")) + to_json_line(axes);
}

bool can_stand(const Json& record) {
  return has_row(record) && record.contains("point") &&
         find_number(record, "layer.slowest_us.p50").has_value() &&
         find_number(record, "point.attempt").value_or(1) <= 1;
}

std::vector<Replaced> replaced_in(const Json& record) {
  if (copies_locally(record)) return {Replaced::exchange};
  if (find_text(record, "load_from") != "counterfactual") return {};
  return {Replaced::routing, Replaced::placement};
}

// Of the transfers, where the layer is in parts.
std::optional<double> exchange_us(const Json& record) {
  const std::optional<Breakdown> parts = breakdown_of(record);
  if (!parts) return std::nullopt;
  return parts->at(LayerPart::count_exchange) + parts->at(LayerPart::dispatch) +
         parts->at(LayerPart::combine);
}

void add_repeat(const Json& point, const Json& instead, Counterfactual& one) {
  one.point_us.push_back(*find_number(point, "layer.slowest_us.p50"));
  one.instead_us.push_back(*find_number(instead, "layer.slowest_us.p50"));
  if (one.replaced != Replaced::exchange) return;
  const auto as_is = exchange_us(point), copied = exchange_us(instead);
  if (!as_is || !copied) return;
  one.point_exchange_us.push_back(*as_is);
  one.instead_exchange_us.push_back(*copied);
}

// Neighbours are EP sizes at one load, and what is beside one point.
std::tuple<double, double> place_of(const Counterfactual& one) {
  return {find_number(*one.point, "point.tokens_global").value_or(0),
          find_number(*one.point, "point.ep_size").value_or(0)};
}

class Found {
 public:
  void add(const Json& point, const Json& instead, Replaced replaced) {
    const std::string key = repeats_key(point) + "\n" + repeats_key(instead);
    const auto [at, is_new] = position_.emplace(key, all_.size());
    if (is_new) {
      Counterfactual& one = all_.emplace_back();
      one.point = &point;
      one.instead = &instead;
      one.replaced = replaced;
    }
    add_repeat(point, instead, all_[at->second]);
  }
  std::vector<Counterfactual> finish() {
    for (Counterfactual& one : all_) {
      if (one.point_exchange_us.size() == one.point_us.size()) continue;
      one.point_exchange_us.clear();
      one.instead_exchange_us.clear();
    }
    std::ranges::stable_sort(all_, {}, place_of);
    return std::move(all_);
  }

 private:
  std::vector<Counterfactual> all_;
  std::map<std::string, std::size_t> position_;
};

}  // namespace

std::vector<double> Counterfactual::differences_us() const {
  std::vector<double> differences;
  for (std::size_t i = 0; i < point_us.size(); ++i) {
    differences.push_back(instead_us[i] - point_us[i]);
  }
  return differences;
}

std::optional<Interval> Counterfactual::interval() const {
  const std::vector<double> differences = differences_us();
  return differences.size() < 2 ? std::nullopt : repeats_interval(differences);
}

std::vector<Counterfactual> counterfactuals_of(const std::vector<TableRow>& rows) {
  std::map<std::string, std::vector<const Json*>> points;
  std::vector<TableRow> instead;
  for (const TableRow& row : rows) {
    if (!can_stand(*row.record)) continue;
    if (!replaced_in(*row.record).empty()) {
      instead.push_back(row);
      continue;
    }
    for (const Replaced replaced : {Replaced::routing, Replaced::placement, Replaced::exchange}) {
      points[shared_key(row, replaced)].push_back(row.record);
    }
  }
  Found found;
  for (const TableRow& row : instead) {
    for (const Replaced replaced : replaced_in(*row.record)) {
      const auto partners = points.find(shared_key(row, replaced));
      if (partners == points.end()) continue;
      for (const Json* point : partners->second) found.add(*point, *row.record, replaced);
    }
  }
  return found.finish();
}

}  // namespace epsweep
