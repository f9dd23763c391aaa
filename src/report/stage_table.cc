#include "report/stage_table.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "report/record_access.h"
#include "report/record_layout.h"
#include "report/text_table.h"

namespace epsweep {
namespace {

constexpr const char* kLegend =
    "(us per layer; p50: slowest rank inside each iteration, then the median, 95 %: its interval; "
    "slowest: world rank (how often);\nmin: the fastest rank; wait: for the last rank to come in, "
    "p50 of the rank that waits most; skew: first to last in; transfer: last in to last out;\n"
    "last in: rank (how often); cpu: of the slowest rank; %: p50 of the sum of all stages; GB/s: "
    "bytes of all ranks / (last end - first begin), with their letter)";

std::string share_text(const Json* rank, const std::optional<double>& share) {
  if (rank == nullptr || !share.has_value()) return "-";
  return fmt::format("{} ({:.0f}%)", plain_text(rank), *share * 100);
}

std::string interval_text(const Json& part) {
  const auto low = find_number(part, "slowest_us.p50_low");
  const auto high = find_number(part, "slowest_us.p50_high");
  return low && high ? fmt::format("{}-{}", short_number(*low), short_number(*high)) : "-";
}

// "12.3 (rank 5)": of the rank whose p50 is largest.
std::string wait_text(const Json& part, const std::vector<int>& ranks) {
  const Json* waits = find_value(part, "exchange.wait_p50_us_of_rank");
  if (waits == nullptr || !waits->is_array() || waits->size() != ranks.size()) return "-";
  std::size_t most = 0;
  for (std::size_t row = 0; row < waits->size(); ++row) {
    if (!(*waits)[row].is_number()) return "-";
    if ((*waits)[row].get<double>() > (*waits)[most].get<double>()) most = row;
  }
  const double wait_us = (*waits)[most].get<double>();
  if (wait_us <= 0) return "0";
  return fmt::format("{} (rank {})", short_number(wait_us), ranks[most]);
}

std::string rate_text(const Json& part) {
  const auto rate = find_number(part, "aggregate_gb_per_s");
  return rate ? fmt::format("{} {}", short_number(rate), find_text(part, "letter")) : "-";
}

struct Column {
  std::string name;
  std::function<std::string(const Json& part)> cell;
};

std::vector<Column> columns_of(const std::vector<int>& ranks, std::optional<double> total_us) {
  const auto number = [](const char* path) {
    return [path](const Json& part) { return short_number(find_number(part, path)); };
  };
  return {{"p50", number("slowest_us.p50")},
          {"95 %", interval_text},
          {"slowest",
           [](const Json& part) {
             return share_text(find_value(part, "slowest_rank"),
                               find_number(part, "slowest_rank_share"));
           }},
          {"min", number("fastest_rank_p50_us")},
          {"wait", [ranks](const Json& part) { return wait_text(part, ranks); }},
          {"skew", number("exchange.skew_in_us.p50")},
          {"transfer", number("exchange.transfer_us.p50")},
          {"last in",
           [](const Json& part) {
             return share_text(find_value(part, "exchange.last_in_rank"),
                               find_number(part, "exchange.last_in_share"));
           }},
          {"cpu", number("slowest_rank_cpu_p50_us")},
          {"%",
           [total_us](const Json& part) {
             const auto p50 = find_number(part, "slowest_us.p50");
             if (!p50 || !total_us || *total_us <= 0) return std::string("-");
             return short_percent(*p50 / *total_us);
           }},
          {"GB/s", rate_text}};
}

// Without columns that nothing in the table has a value for.
std::string rows_text(const std::vector<std::string>& names, const std::vector<const Json*>& parts,
                      const std::vector<Column>& columns) {
  TextTable table;
  table.columns.push_back({"stage", Align::left});
  for (const std::string& name : names) table.rows.push_back({name});
  for (const Column& column : columns) {
    std::vector<std::string> cells;
    for (const Json* part : parts) cells.push_back(column.cell(*part));
    if (std::ranges::all_of(cells, [](const std::string& cell) { return cell == "-"; })) continue;
    table.columns.push_back({column.name});
    for (std::size_t row = 0; row < cells.size(); ++row) table.rows[row].push_back(cells[row]);
  }
  return render(table);
}

std::string regime_text(const std::string& regime) {
  if (regime == "aligned") return "aligned (ranks start every stage together)";
  if (regime == "chained") return "chained (back to back, waiting included)";
  return regime + " (nobody says whether ranks started together)";
}

}  // namespace

std::string stage_table(const Json& record, const std::string& where) {
  const Json *stages = find_value(record, "stages"), *layer = find_value(record, "layer");
  if (stages == nullptr && layer == nullptr) return "";
  const std::vector<int> ranks = ranks_of_record(record, where);
  const auto columns = columns_of(ranks, find_number(record, "all_stages.slowest_us.p50"));
  std::string text;
  if (stages != nullptr && stages->is_object() && !stages->empty()) {
    std::vector<std::string> names;
    std::vector<const Json*> parts;
    for (const auto& [name, part] : stages->items()) {
      names.push_back(name);
      parts.push_back(&part);
    }
    if (const Json* all = find_value(record, "all_stages"); all != nullptr) {
      names.push_back("all stages");
      parts.push_back(all);
    }
    text += fmt::format("Stages, regime {}\n{}\n{}", regime_text(find_text(*parts[0], "regime")),
                        kLegend, rows_text(names, parts, columns));
  }
  if (layer != nullptr) {
    const std::string skew =
        find_value(record, "entry_skew_us") == nullptr
            ? ""
            : fmt::format("; {:+.1f} us against all stages", *find_number(record, "entry_skew_us"));
    text += fmt::format("Layer, regime {}{}\n{}", regime_text(find_text(*layer, "regime")), skew,
                        rows_text({"layer"}, {layer}, columns_of(ranks, std::nullopt)));
  }
  return text;
}

}  // namespace epsweep
