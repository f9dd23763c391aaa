#include "report/baseline_lines.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "report/point_choices.h"
#include "report/record_access.h"
#include "report/verdict.h"

namespace epsweep {
namespace {

const std::vector<std::string> kKernelAxes = {"grouped_gemm"};
const std::vector<std::string> kExchangeAxes = {"exchange_unit", "transport", "launch"};
const std::vector<std::string> kAllAxes = {"grouped_gemm", "exchange_unit", "transport", "launch"};
constexpr const char* kLayerPath = "layer.slowest_us.p50";
constexpr const char* kFfnPath = "stages.expert_ffn.slowest_us.p50";

bool is_choice(const std::string& axis) {
  return std::ranges::find(kAllAxes, axis) != kAllAxes.end();
}

std::vector<std::string> option_names(const std::vector<PointChoice>& points) {
  std::vector<std::string> names;
  for (const PointChoice& point : points) {
    for (const PointOption& option : point.options) {
      if (std::ranges::find(names, option.name) == names.end()) names.push_back(option.name);
    }
  }
  std::ranges::sort(names);
  return names;
}

// The ungrouped one with the shortest name first, then the others by name.
std::vector<std::string> kernel_names(const std::vector<PointChoice>& points) {
  std::vector<std::string> names = option_names(points);
  std::ranges::stable_sort(names, {}, [](const std::string& name) {
    return is_ungrouped_kernel(name) ? name.size() : SIZE_MAX;
  });
  return names;
}

std::string best_text(const PointChoice& point) {
  return point.best().name + (point.best_is_shown() ? "" : "?");
}

// Mark, EP size, load, rows per expert, and the axes that are not chosen among.
std::vector<TableColumn> point_columns(const std::vector<Axis>& varying,
                                       const std::vector<std::string>& choice) {
  std::vector<TableColumn> columns = key_columns();
  columns.push_back({{"M mean"}, [](const TableRow& row) {
                       return short_number(find_number(*row.record, "rows_per_expert.mean"));
                     }});
  for (const Axis& axis : varying) {
    const bool chosen = std::ranges::find(choice, axis.name) != choice.end();
    if (!chosen && !is_repeat_axis(axis)) {
      columns.push_back({{axis.name, Align::left}, axis.text});
    }
  }
  return columns;
}

// Times of every option, and how many times as fast as `baseline` it is; empty for no baseline.
std::string choice_table(const std::vector<PointChoice>& points,
                         const std::vector<TableColumn>& key, const std::vector<std::string>& names,
                         const std::string& baseline) {
  TextTable table;
  for (const TableColumn& column : key) table.columns.push_back(column.head);
  for (const std::string& name : names) {
    table.columns.push_back({name});
    if (!baseline.empty() && name != baseline) table.columns.push_back({"x " + baseline});
  }
  table.columns.push_back({"best", Align::left});
  for (const PointChoice& point : points) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const TableColumn& column : key) cells.push_back(column.cell(point.row));
    const PointOption* ungrouped = baseline.empty() ? nullptr : point.find(baseline);
    for (const std::string& name : names) {
      const PointOption* option = point.find(name);
      cells.push_back(option != nullptr ? short_number(option->median_us) : "-");
      if (baseline.empty() || name == baseline) continue;
      const bool both = option != nullptr && ungrouped != nullptr && option->median_us > 0;
      cells.push_back(both ? fmt::format("{:.2f}", ungrouped->median_us / option->median_us) : "-");
    }
    cells.push_back(best_text(point));
  }
  return render(table);
}

std::vector<PointChoice> with_options(std::vector<PointChoice> points) {
  std::erase_if(points, [](const PointChoice& point) { return point.options.size() < 2; });
  return points;
}

std::string kernel_text(const std::vector<TableRow>& measured, const std::vector<Axis>& varying) {
  const std::vector<PointChoice> points =
      with_options(point_choices(measured, varying, kKernelAxes, kFfnPath));
  if (points.empty()) return "";
  const std::vector<std::string> names = kernel_names(points);
  const bool has_baseline = is_ungrouped_kernel(names.front());
  const std::string baseline = has_baseline ? names.front() : "";
  const std::string factor =
      has_baseline ? fmt::format("; x {}: how many times as fast as that", baseline) : "";
  return fmt::format(
             "\nKernels\n(expert_ffn, aligned, p50 us of the slowest rank, median of repeats{}; "
             "best?: repeats do not show it to be faster than every other)\n",
             factor) +
         choice_table(points, point_columns(varying, kKernelAxes), names, baseline);
}

std::string exchange_text(const std::vector<TableRow>& measured, const std::vector<Axis>& varying) {
  const std::vector<PointChoice> points =
      with_options(point_choices(measured, varying, kExchangeAxes, kLayerPath));
  if (points.empty()) return "";
  return "\nExchanges\n(layer, chained, p50 us, median of repeats; best?: repeats do not show it "
         "to be faster than every other)\n" +
         choice_table(points, point_columns(varying, kExchangeAxes), option_names(points), "");
}

// "EP8 (loop rank)"
std::string sized_name(const PointChoice& point) {
  return fmt::format("EP{} ({})", plain_text(find_value(*point.row.record, "point.ep_size")),
                     best_text(point));
}

// What points of several EP sizes have in common, by the axes that nobody chooses among.
std::string load_key(const PointChoice& point, const std::vector<Axis>& varying) {
  const Json& record = *point.row.record;
  std::string key = fmt::format("{} {}", plain_text(find_value(record, "point.concurrency")),
                                plain_text(find_value(record, "point.tokens")));
  for (const Axis& axis : varying) {
    if (is_choice(axis.name) || is_repeat_axis(axis)) continue;
    key += fmt::format(" {} {}", axis.name, axis.text(point.row));
  }
  return key;
}

std::string lines_of(const std::string& what, std::vector<const PointChoice*> sizes) {
  std::ranges::stable_sort(sizes, {}, [](const PointChoice* point) {
    return find_number(*point->row.record, "point.ep_size").value_or(0);
  });
  std::string text;
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    text += fmt::format("  {}: {}\n", what,
                        difference_text(sized_name(*sizes[i]), sized_name(*sizes.front()),
                                        sizes.front()->best().us, sizes[i]->best().us));
  }
  return text;
}

std::string best_sizes_text(const std::vector<TableRow>& measured,
                            const std::vector<Axis>& varying) {
  const std::vector<PointChoice> points = point_choices(measured, varying, kAllAxes, kLayerPath);
  const bool chosen = std::ranges::any_of(
      points, [](const PointChoice& point) { return point.options.size() > 1; });
  if (!chosen) return "";
  std::vector<std::string> order;
  std::map<std::string, std::vector<const PointChoice*>> loads;
  for (const PointChoice& point : points) {
    const std::string key = load_key(point, varying);
    if (!loads.contains(key)) order.push_back(key);
    loads[key].push_back(&point);
  }
  std::string text;
  for (const std::string& key : order) text += lines_of(key, loads[key]);
  if (text.empty()) return "";
  return "\nEP sizes, each at its best choice (layer p50, chained; chosen by these same "
         "repeats)\n" +
         text;
}

}  // namespace

bool is_ungrouped_kernel(const std::string& name) {
  return name == "loop" || name.find("_loop") != std::string::npos;
}

std::string baseline_text(const std::vector<TableRow>& measured, const std::vector<Axis>& varying) {
  if (std::ranges::none_of(varying, [](const Axis& axis) { return is_choice(axis.name); })) {
    return "";
  }
  return kernel_text(measured, varying) + exchange_text(measured, varying) +
         best_sizes_text(measured, varying);
}

}  // namespace epsweep
