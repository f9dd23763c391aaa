#include "report/compare_text.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/stage.h"
#include "base/text.h"
#include "report/compare_cells.h"
#include "report/record_access.h"
#include "report/text_table.h"

namespace epsweep {
namespace {

// Pairs of one concurrency mode and model: no others stand in one table.
struct PairGroup {
  std::string heading;
  std::vector<const ComparedPair*> pairs;
};

// As in reports: the load first, EP size last, so that neighbours are what one looks at together.
void sort_pairs(const ShownAxes& axes, std::vector<const ComparedPair*>& pairs) {
  struct Keyed {
    double tokens = 0;
    std::vector<std::string> variant;
    double ep_size = 0;
    const ComparedPair* pair = nullptr;
  };
  std::vector<Keyed> keyed;
  for (const ComparedPair* pair : pairs) {
    const auto number = [pair](const char* path) {
      return find_number(*pair->match.a.front(), path).value_or(0);
    };
    const std::string mode = find_text(*pair->match.a.front(), "point.concurrency");
    Keyed key = {.tokens = number(mode == "listed" ? "point.tokens_global" : "point.tokens"),
                 .variant = {},
                 .ep_size = number("point.ep_size"),
                 .pair = pair};
    for (const std::string& axis : axes.columns) key.variant.push_back(axis_cell(*pair, axis));
    keyed.push_back(std::move(key));
  }
  std::ranges::stable_sort(keyed, [](const Keyed& x, const Keyed& y) {
    return std::tie(x.tokens, x.variant, x.ep_size) < std::tie(y.tokens, y.variant, y.ep_size);
  });
  std::ranges::transform(keyed, pairs.begin(), &Keyed::pair);
}

std::vector<PairGroup> groups_of(const Comparison& comparison) {
  std::vector<PairGroup> groups;
  for (const ComparedPair& pair : comparison.pairs) {
    const std::string heading =
        fmt::format("{}, {}", axis_cell(pair, "model"), axis_cell(pair, "concurrency"));
    auto group = std::ranges::find(groups, heading, &PairGroup::heading);
    if (group == groups.end()) group = groups.insert(group, {heading, {}});
    group->pairs.push_back(&pair);
  }
  for (PairGroup& group : groups) sort_pairs(shown_axes(group.pairs), group.pairs);
  return groups;
}

using Cell = std::function<std::string(const ComparedPair&)>;
struct Column {
  TextColumn head;
  Cell cell;
};

std::vector<Column> key_columns(const ShownAxes& axes) {
  const auto of_axis = [](const std::string& axis) {
    return [axis](const ComparedPair& pair) { return axis_cell(pair, axis); };
  };
  std::vector<Column> columns = {{{"", Align::left}, marks_cell},
                                 {{"EP"}, of_axis("ep_size")},
                                 {{"tok/group"}, of_axis("tokens_global")}};
  for (const std::string& axis : axes.columns) {
    columns.push_back({{axis, Align::left}, of_axis(axis)});
  }
  return columns;
}

Cell of_quantity(const std::string& name,
                 const std::function<std::string(const QuantityChange&)>& text) {
  return [name, text](const ComparedPair& pair) -> std::string {
    const QuantityChange* quantity = find_quantity(pair, name);
    return quantity != nullptr ? text(*quantity) : "-";
  };
}

// Both sides and the change of one outcome.
void add_outcome(const std::string& title, const std::string& name, std::vector<Column>& columns) {
  columns.push_back({{title + " A"}, of_quantity(name, [](const QuantityChange& quantity) {
                       return side_cell(quantity.a);
                     })});
  columns.push_back({{title + " B"}, of_quantity(name, [](const QuantityChange& quantity) {
                       return side_cell(quantity.b);
                     })});
  columns.push_back({{"change"}, of_quantity(name, percent_cell)});
}

std::string table_of(const std::vector<Column>& columns,
                     const std::vector<const ComparedPair*>& pairs) {
  TextTable table;
  for (const Column& column : columns) table.columns.push_back(column.head);
  for (const ComparedPair* pair : pairs) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const Column& column : columns) cells.push_back(column.cell(*pair));
  }
  return render(table);
}

std::string group_text(const PairGroup& group) {
  const ShownAxes axes = shown_axes(group.pairs);
  std::vector<Column> outcomes = key_columns(axes);
  outcomes.push_back({{"groups"}, groups_cell});
  outcomes.push_back({{"repeats"}, repeats_cell});
  add_outcome("layer us", "layer_p50_us", outcomes);
  add_outcome("tok/s/rank", "tokens_per_s_per_rank", outcomes);
  std::vector<Column> stages = key_columns(axes);
  stages.push_back({{"stages A"}, of_quantity("all_stages_p50_us", [](const QuantityChange& all) {
                      return side_cell(all.a);
                    })});
  stages.push_back({{"B - A"}, of_quantity("all_stages_p50_us", difference_cell)});
  for (const std::string_view stage : kStageNames) {
    const std::string name(stage);
    stages.push_back({{name}, [name](const ComparedPair& pair) -> std::string {
                        const QuantityChange* time = find_quantity(pair, name + "_p50_us");
                        if (time == nullptr) time = find_quantity(pair, name + "_transfer_p50_us");
                        return time != nullptr ? difference_cell(*time) : "-";
                      }});
  }
  std::string text = fmt::format("\n## {}\n", group.heading);
  if (!axes.within.empty()) text += fmt::format("{}\n", join(axes.within));
  text += "\nLatency and throughput, B against A\n" + table_of(outcomes, group.pairs);
  return text + "\nStages, B - A in us\n" + table_of(stages, group.pairs);
}

std::string heading_text(const Comparison& comparison) {
  std::string text = fmt::format("# A: {}\n# B: {}\n", comparison.a.text(), comparison.b.text());
  for (const FieldDifference& one : comparison.allowed) {
    text += fmt::format("NOT COMPARABLE, allowed: {}: {}\n", one.field, one.text);
  }
  for (const FieldDifference& one : comparison.run_differences) {
    text += fmt::format("differs: {}: {}\n", one.field, one.text);
  }
  if (!comparison.unknown_axes.empty()) {
    text += fmt::format("not matched by, since one side's records do not have it: {}\n",
                        join(comparison.unknown_axes));
  }
  return text +
         "(layer: p50 us per layer, chained; stages: aligned, of exchanges the transfer; medians "
         "of "
         "the repeats (with their interval); (x): no difference shown; x?: intervals are apart, "
         "but too few repeats to say so; marks as in reports)\n";
}

// "; stages: expert_ffn +20.0, dispatch -3.00": those that repeats show, largest first.
std::string shown_stages(const ComparedPair& pair) {
  constexpr std::size_t kMost = 3;
  std::vector<const QuantityChange*> shown;
  for (const QuantityChange& quantity : pair.changes) {
    if (quantity.rank != Rank::part || quantity.name == "all_stages_p50_us") continue;
    if (quantity.change == Change::better || quantity.change == Change::worse) {
      shown.push_back(&quantity);
    }
  }
  std::ranges::stable_sort(shown, std::greater<>{}, [](const QuantityChange* quantity) {
    return std::abs(quantity->difference());
  });
  if (shown.size() > kMost) shown.resize(kMost);
  std::vector<std::string> parts;
  for (const QuantityChange* quantity : shown) {
    const std::string stage = quantity->name.substr(0, quantity->name.rfind("_p50"));
    parts.push_back(fmt::format("{} {}", stage, difference_cell(*quantity)));
  }
  return parts.empty() ? "" : "; " + join(parts) + " us";
}

std::string change_line(const NamedChange& change,
                        const std::map<const ComparedPair*, std::string>& labels) {
  const QuantityChange& quantity = *change.quantity;
  const bool is_time = quantity.unit == "us";
  return fmt::format("  {}: {} {} -> {} {}, {}{}\n", labels.at(change.pair), quantity.name,
                     side_cell(quantity.a), side_cell(quantity.b), quantity.unit,
                     percent_cell(quantity), is_time ? shown_stages(*change.pair) : "");
}

std::string changes_text(const Comparison& comparison, const std::vector<PairGroup>& groups) {
  std::map<const ComparedPair*, std::string> labels;
  for (const PairGroup& group : groups) {
    const ShownAxes axes = shown_axes(group.pairs);
    for (const ComparedPair* pair : group.pairs) {
      labels[pair] = (groups.size() > 1 ? group.heading + " " : "") + pair_label(*pair, axes);
    }
  }
  std::string text;
  for (const auto& [title, change] :
       {std::pair{"Regressions", Change::worse}, std::pair{"Improvements", Change::better}}) {
    const std::vector<NamedChange> changes = outcomes_with(comparison, change);
    text += fmt::format("\n{}: {}\n", title,
                        changes.empty() ? "none shown" : std::to_string(changes.size()));
    for (const NamedChange& one : changes) text += change_line(one, labels);
  }
  return text + fmt::format("No difference shown: {}; too few repeats to say: {}\n",
                            outcomes_with(comparison, Change::nothing).size(),
                            outcomes_with(comparison, Change::too_few).size());
}

std::string lone_text(const std::string& side, const std::vector<LonePoint>& points) {
  if (points.empty()) return "";
  std::string text = fmt::format("\nOf {} alone\n", side);
  for (const LonePoint& point : points) {
    text +=
        fmt::format("  {}{}: {}\n", short_point_label(*point.record),
                    point.repeats > 1 ? fmt::format(", {} repeats", point.repeats) : "", point.why);
  }
  return text;
}

std::string check_text(const RegressionCheck& check) {
  std::string text =
      fmt::format("\nRegressions beyond {:.6g} %: {}", check.limit.share * 100, check.shown);
  if (check.too_few > 0) {
    text += fmt::format("; {} more with too few repeats to say, which {}", check.too_few,
                        check.limit.few_repeats == FewRepeats::fail ? "fail too" : "do not fail");
  }
  return text + "\n";
}

}  // namespace

std::string compare_text(const Comparison& comparison,
                         const std::optional<RegressionCheck>& check) {
  const std::vector<PairGroup> groups = groups_of(comparison);
  std::string text = heading_text(comparison);
  for (const PairGroup& group : groups) text += group_text(group);
  text += changes_text(comparison, groups);
  text += lone_text("A", comparison.only_in_a) + lone_text("B", comparison.only_in_b);
  if (check.has_value()) text += check_text(*check);
  return text;
}

}  // namespace epsweep
