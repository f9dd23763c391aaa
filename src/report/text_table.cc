#include "report/text_table.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep {
namespace {

void append_cell(const std::string& text, std::size_t width, Align align, std::string& line) {
  const std::string blanks(width - text.size(), ' ');
  line += align == Align::left ? text + blanks : blanks + text;
}

void end_line(std::string& line, std::string& text) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
  line.clear();
}

}  // namespace

std::string render(const TextTable& table) {
  std::vector<std::size_t> widths;
  for (const TextColumn& column : table.columns) widths.push_back(column.header.size());
  for (const std::vector<std::string>& row : table.rows) {
    EPS_EXPECT(row.size() == widths.size(), "table row of another width");
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text, line;
  const auto separate = [&line](std::size_t i) { line += i > 0 ? "  " : ""; };
  for (std::size_t i = 0; i < widths.size(); ++i) {
    separate(i);
    append_cell(table.columns[i].header, widths[i], table.columns[i].align, line);
  }
  end_line(line, text);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    separate(i);
    line.append(widths[i], '-');
  }
  end_line(line, text);
  for (const std::vector<std::string>& row : table.rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      separate(i);
      append_cell(row[i], widths[i], table.columns[i].align, line);
    }
    end_line(line, text);
  }
  return text;
}

std::string short_number(const std::optional<double>& value) {
  if (!value.has_value()) return "-";
  const double size = std::abs(*value);
  if (size == 0) return "0";
  if (size < 0.01) return fmt::format("{:.1e}", *value);
  if (size < 10) return fmt::format("{:.2f}", *value);
  if (size < 1000) return fmt::format("{:.1f}", *value);
  return fmt::format("{:.0f}", *value);
}

std::string short_percent(const std::optional<double>& fraction) {
  return fraction.has_value() ? fmt::format("{:.1f}", *fraction * 100) : "-";
}

}  // namespace epsweep
