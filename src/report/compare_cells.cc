#include "report/compare_cells.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "report/record_access.h"
#include "report/table_columns.h"
#include "report/text_table.h"

namespace epsweep {
namespace {

std::string signed_number(double value) {
  return value == 0 ? "0" : (value > 0 ? "+" : "-") + short_number(std::abs(value));
}

std::string marked(const std::string& text, Change change) {
  switch (change) {
    case Change::nothing:
      return "(" + text + ")";
    case Change::too_few:
      return text + "?";
    case Change::better:
    case Change::worse:
      break;
  }
  return text;
}

// What the key columns and the heading of a table say.
const std::set<std::string>& axes_shown_apart() {
  static const std::set<std::string> axes = {"attempt", "concurrency", "ep_size",      "model",
                                             "repeat",  "tokens",      "tokens_global"};
  return axes;
}

}  // namespace

const QuantityChange* find_quantity(const ComparedPair& pair, const std::string& name) {
  const auto found = std::ranges::find(pair.changes, name, &QuantityChange::name);
  return found == pair.changes.end() ? nullptr : &*found;
}

std::string axis_cell(const ComparedPair& pair, const std::string& axis) {
  return axis_change(*pair.match.a.front(), *pair.match.b.front(), axis);
}

std::string side_cell(const SideValues& side) {
  if (side.values.size() == 1) return short_number(side.median);
  return fmt::format("{} ({}-{})", short_number(side.median), short_number(side.interval.low),
                     short_number(side.interval.high));
}

std::string percent_cell(const QuantityChange& quantity) {
  if (!quantity.relative.has_value()) return difference_cell(quantity);
  const std::string text = fmt::format("{:+.1f}%", *quantity.relative * 100);
  if (quantity.change == Change::better) return text + " better";
  if (quantity.change == Change::worse) return text + " worse";
  return marked(text, quantity.change);
}

std::string difference_cell(const QuantityChange& quantity) {
  return marked(signed_number(quantity.difference()), quantity.change);
}

std::string repeats_cell(const ComparedPair& pair) {
  const std::size_t a = pair.match.a.size(), b = pair.match.b.size();
  return a == b ? std::to_string(a) : fmt::format("{}+{}", a, b);
}

std::string groups_cell(const ComparedPair& pair) {
  const std::string a = plain_text(find_value(*pair.match.a.front(), "num_groups"));
  const std::string b = plain_text(find_value(*pair.match.b.front(), "num_groups"));
  if (a.empty() && b.empty()) return "-";
  return a == b ? a : fmt::format("{} -> {}", a, b);
}

std::string marks_cell(const ComparedPair& pair) {
  std::string marks;
  for (const std::vector<const Json*>* side : {&pair.match.a, &pair.match.b}) {
    for (const Json* record : *side) {
      for (const char mark : row_mark(*record)) {
        if (marks.find(mark) == std::string::npos) marks += mark;
      }
    }
  }
  return marks;
}

ShownAxes shown_axes(const std::vector<const ComparedPair*>& pairs) {
  EPS_EXPECT(!pairs.empty(), "axes of no pairs");
  std::set<std::string> axes;
  for (const ComparedPair* pair : pairs) {
    axes.merge(axes_of(*pair->match.a.front()));
    axes.merge(axes_of(*pair->match.b.front()));
  }
  ShownAxes shown;
  for (const std::string& axis : axes) {
    if (axes_shown_apart().contains(axis)) continue;
    const std::string first = axis_cell(*pairs.front(), axis);
    const bool same = std::ranges::all_of(
        pairs, [&](const ComparedPair* pair) { return axis_cell(*pair, axis) == first; });
    if (!same) shown.columns.push_back(axis);
    if (same && first.find(" -> ") != std::string::npos) {
      shown.within.push_back(axis + " " + first);
    }
  }
  return shown;
}

std::string pair_label(const ComparedPair& pair, const ShownAxes& axes) {
  std::string label = fmt::format("EP{} {} tok/group", axis_cell(pair, "ep_size"),
                                  axis_cell(pair, "tokens_global"));
  for (const std::string& axis : axes.columns) {
    label += fmt::format(" {} {}", axis, axis_cell(pair, axis));
  }
  return label;
}

}  // namespace epsweep
