#include "report/prediction_lines.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

TableColumn us_column(const std::string& header, const std::string& path) {
  return {{header}, [path](const TableRow& row) {
            return short_number(find_number(*row.record, "prediction." + path));
          }};
}

TableColumn error_column(const std::string& path) {
  return {{"error %"}, [path](const TableRow& row) -> std::string {
            const auto error = find_number(*row.record, "prediction." + path);
            return error ? fmt::format("{:+.1f}", *error * 100) : "-";
          }};
}

std::vector<TableColumn> interval_columns(const std::vector<TableRow>& rows) {
  std::vector<TableColumn> columns = {us_column("layer", "layer.predicted_us"),
                                      us_column("low", "layer.low_us"),
                                      us_column("high", "layer.high_us")};
  for (const std::string stage : {"dispatch", "expert_ffn", "combine"}) {
    columns.push_back({{stage}, [path = "prediction.stages." + stage](const TableRow& row) {
                         const auto text = [&](const char* key) {
                           return short_number(find_number(*row.record, path + key));
                         };
                         // A hardware file's exchange has no interval.
                         if (!find_number(*row.record, path + ".low_us")) {
                           return text(".predicted_us");
                         }
                         const std::string low = text(".low_us"), high = text(".high_us");
                         return low == high ? low : low + "-" + high;
                       }});
  }
  for (const std::string what : {"exchange", "ffn"}) {
    columns.push_back({{what + " x2"}, [path = what + "_doublings"](const TableRow& row) {
                         const auto doublings = find_number(*row.record, "prediction." + path);
                         return doublings ? fmt::format("{:.1f}", *doublings) : "-";
                       }});
  }
  columns.push_back({{"expert_ffn is", Align::left}, [](const TableRow& row) {
                       return find_text(*row.record, "prediction.ffn_basis");
                     }});
  const auto is_labelled = [](const TableRow& row) { return has_measured_compute(*row.record); };
  if (std::ranges::none_of(rows, is_labelled)) return columns;
  columns.push_back({{"is", Align::left}, [](const TableRow& row) {
                       return find_text(*row.record, "prediction.label");
                     }});
  return columns;
}

// Of the rows that have `key` in their prediction; empty for none.
std::string rendered(const std::vector<TableRow>& rows, const std::vector<Axis>& varying,
                     std::vector<TableColumn> own, const std::vector<std::string>& keys) {
  std::vector<TableColumn> columns = key_columns();
  for (const Axis& axis : varying) columns.push_back({{axis.name, Align::left}, axis.text});
  for (TableColumn& column : own) columns.push_back(std::move(column));
  TextTable table;
  for (const TableColumn& column : columns) table.columns.push_back(column.head);
  for (const TableRow& row : rows) {
    const auto has = [&row](const std::string& key) {
      return find_value(*row.record, "prediction." + key) != nullptr;
    };
    if (std::ranges::none_of(keys, has)) continue;
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const TableColumn& column : columns) cells.push_back(column.cell(row));
  }
  return table.rows.empty() ? "" : render(table);
}

std::vector<TableColumn> prediction_columns() {
  std::vector<TableColumn> columns;
  for (const std::string term : {"dispatch", "combine", "expert_ffn"}) {
    columns.push_back(us_column(term, term + ".predicted_us"));
    columns.push_back(us_column("measured", term + ".measured_us"));
    columns.push_back(error_column(term + ".error"));
  }
  columns.push_back({{"exchange", Align::left}, [](const TableRow& row) {
                       return find_text(*row.record, "prediction.exchange.limit");
                     }});
  return columns;
}

}  // namespace

std::string prediction_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying) {
  const std::string table =
      rendered(rows, varying, prediction_columns(), {"expert_ffn", "exchange"});
  if (table.empty()) return "";
  return "\nPredicted from this run's ceilings, beside measured\n"
         "(us per layer, p50 of the slowest rank, of exchanges the transfer; error: measured / "
         "predicted - 1)\n" +
         table;
}

std::string interval_text(const std::vector<TableRow>& rows, const std::vector<Axis>& varying) {
  const std::string table =
      rendered(rows, varying, interval_columns(rows), {"layer.low_us", "label"});
  if (table.empty()) return "";
  return "\nIntervals of the predictions\n"
         "(us per layer; x2: doublings of EP size, and of slots or rows, beyond the calibration; "
         "each widens the interval; of measured stages that of the median)\n" +
         table;
}

std::string predicted_mark_text(const std::vector<TableRow>& rows) {
  std::set<std::string> sources, of_exchanges, labels;
  for (const TableRow& row : rows) {
    if (!is_predicted(*row.record)) continue;
    const bool computed = has_measured_compute(*row.record);
    (computed ? of_exchanges : sources).insert(find_text(*row.record, "prediction.from"));
    if (computed) labels.insert(find_text(*row.record, "prediction.label"));
  }
  const auto listed = [](const std::set<std::string>& texts) {
    return join(std::vector<std::string>(texts.begin(), texts.end()));
  };
  std::string text;
  if (!sources.empty()) {
    text += fmt::format("P predicted from {}: nothing was measured or checked\n", listed(sources));
  }
  if (!of_exchanges.empty()) {
    text += fmt::format(
        "V {}: router, permute, expert_ffn and unpermute timed on ranks in their place, exchanges "
        "from "
        "{}; values were not checked\n",
        listed(labels), listed(of_exchanges));
  }
  return text;
}

}  // namespace epsweep
