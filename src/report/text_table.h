// Aligned text tables and the short numbers in them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace epsweep {

enum class Align { left, right };

struct TextColumn {
  std::string header;
  Align align = Align::right;
};

struct TextTable {
  std::vector<TextColumn> columns;
  std::vector<std::vector<std::string>> rows;
};

// Header, a rule of dashes, the rows; no blanks at line ends. ASCII cells.
std::string render(const TextTable& table);

// At least three digits: 1.23, 45.6, 789.1, 12345; "-" for absent.
std::string short_number(const std::optional<double>& value);
// 0.123 -> "12.3"; "-" for absent.
std::string short_percent(const std::optional<double>& fraction);

}  // namespace epsweep
