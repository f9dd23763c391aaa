// What stands in the tables of a comparison.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/compare.h"

namespace epsweep {

const QuantityChange* find_quantity(const ComparedPair& pair, const std::string& name);

// One axis of both partners: "8", or "8 -> 32".
std::string axis_cell(const ComparedPair& pair, const std::string& axis);

// "100.0", or "100.0 (99.0-101.0)" of several repeats.
std::string side_cell(const SideValues& side);

// Of what repeats do not show: "(+1.0%)"; with too few of them: "+1.0%?"; else "+1.0% worse".
std::string percent_cell(const QuantityChange& quantity);
// In its unit, marked likewise but without the word.
std::string difference_cell(const QuantityChange& quantity);

// "4", or "3+4" where the sides differ.
std::string repeats_cell(const ComparedPair& pair);

// EP groups that ran side by side: "4", or "4 -> 1".
std::string groups_cell(const ComparedPair& pair);

// Marks of all records of both sides, see row_mark().
std::string marks_cell(const ComparedPair& pair);

// Axes besides EP size and load in which pairs differ from one another, or, `within`, in which all
// partners differ in the same way.
struct ShownAxes {
  std::vector<std::string> columns;
  std::vector<std::string> within;  // "grouped_gemm loop -> onednn"
};
ShownAxes shown_axes(const std::vector<const ComparedPair*>& pairs);

// "EP8 256 tok/group routing zipf": of one pair among those.
std::string pair_label(const ComparedPair& pair, const ShownAxes& axes);

}  // namespace epsweep
