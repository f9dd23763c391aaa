// What the columns of the report's tables are and how their cells read a record.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/text_table.h"

namespace epsweep {

struct TableRow {
  const Json* record = nullptr;
  std::string dir;  // run directory it came from
};

struct TableColumn {
  TextColumn head;
  std::function<std::string(const TableRow&)> cell;
};

// One aligned table of a group of points.
struct TableLayout {
  std::string title;
  std::string legend;  // units, one line
  std::vector<TableColumn> columns;
};

// What may differ between rows besides EP size and load; a column where it does, part of the
// heading where it does not.
struct Axis {
  std::string name;
  std::function<std::string(const TableRow&)> text;
};
const std::vector<Axis>& table_axes();
// Whether the axis tells measurements of the same thing apart: repeat, attempt, run.
bool is_repeat_axis(const Axis& axis);

// Foreign load above this share of the host is marked.
inline constexpr double kForeignLoadLimit = 0.05;
// "S" simulated, "P" predicted, "L" a local copy in place of the exchange, "!" more ranks than
// cores, "#" shared devices, "~" foreign load: all that hold.
std::string row_mark(const Json& record);

// Mark, EP size and load: the first columns of every table.
std::vector<TableColumn> key_columns();
// Latency and throughput; stage times; rows per expert and bytes.
std::vector<TableLayout> table_layouts();

}  // namespace epsweep
