#include "report/prediction_lines.h"

#include <fmt/format.h>

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
  std::vector<TableColumn> columns = key_columns();
  for (const Axis& axis : varying) columns.push_back({{axis.name, Align::left}, axis.text});
  for (TableColumn& column : prediction_columns()) columns.push_back(std::move(column));
  TextTable table;
  for (const TableColumn& column : columns) table.columns.push_back(column.head);
  for (const TableRow& row : rows) {
    if (find_value(*row.record, "prediction") == nullptr) continue;
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const TableColumn& column : columns) cells.push_back(column.cell(row));
  }
  if (table.rows.empty()) return "";
  return "\nPredicted from this run's ceilings, beside measured\n"
         "(us per layer, p50 of the slowest rank, of exchanges the transfer; error: measured / "
         "predicted - 1)\n" +
         render(table);
}

}  // namespace epsweep
