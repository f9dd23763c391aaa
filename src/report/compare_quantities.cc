#include "report/compare_quantities.h"

#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "base/stage.h"
#include "report/arrival.h"
#include "report/record_access.h"
#include "report/verdict.h"

namespace epsweep {
namespace {

using Value = std::function<std::optional<double>(const Json&)>;

constexpr const char* kLayer = "layer_p50_us";
constexpr const char* kRate = "tokens_per_s_per_rank";

Value at_path(const std::string& path) {
  return [path](const Json& record) { return find_number(record, path); };
}

// The sum of the stages, in place of a layer that was not timed among others.
std::optional<double> stages_us(const Json& record) {
  return find_number(record, "all_stages.slowest_us.p50");
}

// tokens_per_s_per_rank by that sum: see metrics/tokens_per_s_per_rank.cc.
std::optional<double> stages_rate(const Json& record) {
  const auto us = stages_us(record), groups = find_number(record, "num_groups"),
             tokens = find_number(record, "point.tokens_global"),
             ranks = find_number(record, "num_active_ranks");
  if (!us || !groups || !tokens || !ranks || *us <= 0 || *ranks <= 0) return std::nullopt;
  return *groups * *tokens / (*us * 1e-6) / *ranks;
}

std::vector<double> values_of(const std::vector<const Json*>& repeats, const Value& value) {
  std::vector<double> values;
  for (const Json* record : repeats) {
    if (const auto one = value(*record)) values.push_back(*one);
  }
  return values;
}

// Of an even number of repeats the better one of the two in the middle: then a rate's median is of
// the same repeat as that of its time.
double median_of(std::vector<double> values, Better better) {
  if (better != Better::higher) return nearest_rank(values, 0.5);
  for (double& value : values) value = -value;
  return -nearest_rank(values, 0.5);
}

SideValues side_values(std::vector<double> values, Better better) {
  SideValues side;
  side.median = median_of(values, better);
  side.interval = *repeats_interval(values);
  side.values = std::move(values);
  return side;
}

// Of times that were added up in two ways.
constexpr double kRounding = 1e-9;

Change change_of(const QuantityChange& quantity) {
  if (std::abs(quantity.difference()) <= kRounding * std::abs(quantity.a.median)) {
    return Change::nothing;
  }
  switch (difference_between(quantity.a.values, quantity.b.values).shown) {
    case Shown::nothing:
      return Change::nothing;
    case Shown::too_few:
      return Change::too_few;
    case Shown::faster:  // B's values are the smaller ones
      return quantity.better == Better::lower ? Change::better : Change::worse;
    case Shown::slower:
      break;
  }
  return quantity.better == Better::lower ? Change::worse : Change::better;
}

// Completes what is named already; absent where a side has no value.
std::optional<QuantityChange> compared(QuantityChange quantity, std::vector<double> of_a,
                                       std::vector<double> of_b) {
  if (of_a.empty() || of_b.empty()) return std::nullopt;
  quantity.a = side_values(std::move(of_a), quantity.better);
  quantity.b = side_values(std::move(of_b), quantity.better);
  if (quantity.a.median != 0) {
    quantity.relative = quantity.b.median / quantity.a.median - 1;
  } else if (quantity.b.median == 0) {
    quantity.relative = 0;
  }
  quantity.change = change_of(quantity);
  return quantity;
}

struct Listed {
  QuantityChange named;
  Value value;
};

// Name, unit and direction as the catalog of metrics has them.
QuantityChange metric(const std::string& name) {
  const MetricEntry& entry = MetricCatalog::instance().at(name);
  QuantityChange quantity;
  quantity.name = entry.name;
  quantity.unit = entry.unit;
  quantity.better = entry.better;
  quantity.regime = "chained";
  quantity.rank = Rank::outcome;
  return quantity;
}

QuantityChange aligned_time(const std::string& name) {
  QuantityChange quantity;
  quantity.name = name;
  quantity.unit = "us";
  quantity.regime = "aligned";
  return quantity;
}

std::vector<Listed> parts() {
  std::vector<Listed> all = {{aligned_time("all_stages_p50_us"), stages_us}};
  for (std::size_t s = 0; s < kStageNames.size(); ++s) {
    const std::string stage(kStageNames[s]);
    const bool moves = is_exchange(static_cast<Stage>(s));
    const std::string what = moves ? ".exchange.transfer_us.p50" : ".slowest_us.p50";
    all.push_back({aligned_time(stage + (moves ? "_transfer_p50_us" : "_p50_us")),
                   at_path("stages." + stage + what)});
  }
  return all;
}

std::optional<QuantityChange> compare_outcome(const char* name, const MatchedPair& pair,
                                              const Value& chained, const Value& aligned) {
  std::vector<double> of_a = values_of(pair.a, chained), of_b = values_of(pair.b, chained);
  if (of_a.empty() && of_b.empty()) return std::nullopt;
  QuantityChange quantity = metric(name);
  if (of_a.empty()) {
    of_a = values_of(pair.a, aligned);
    quantity.regime = "aligned in A, chained in B";
  } else if (of_b.empty()) {
    of_b = values_of(pair.b, aligned);
    quantity.regime = "chained in A, aligned in B";
  }
  return compared(std::move(quantity), std::move(of_a), std::move(of_b));
}

}  // namespace

std::optional<double> QuantityChange::worse_by() const {
  if (!relative.has_value()) return std::nullopt;
  return better == Better::higher ? -*relative : *relative;
}

std::vector<QuantityChange> compare_quantities(const MatchedPair& pair) {
  std::vector<QuantityChange> changes;
  const auto add = [&changes](std::optional<QuantityChange> quantity) {
    if (quantity.has_value()) changes.push_back(*std::move(quantity));
  };
  add(compare_outcome(kLayer, pair, at_path("layer.slowest_us.p50"), stages_us));
  add(compare_outcome(kRate, pair, at_path(std::string("metrics.") + kRate), stages_rate));
  const Rank of_stages = changes.empty() ? Rank::outcome : Rank::part;
  for (const Listed& one : parts()) {
    add(compared(one.named, values_of(pair.a, one.value), values_of(pair.b, one.value)));
  }
  if (!changes.empty() && changes.front().name == "all_stages_p50_us") {
    changes.front().rank = of_stages;
  }
  return changes;
}

}  // namespace epsweep
