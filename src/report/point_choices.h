// Points that differ only in how they are run: which kernel, exchange unit, transport and launch.
#pragma once

#include <string>
#include <vector>

#include "report/table_columns.h"

namespace epsweep {

// One way to run a point, with the time of each repeat.
struct PointOption {
  std::string name;  // "onednn", "rank pairwise": the choice axes that vary, in their order
  TableRow row;      // of the first repeat
  std::vector<double> us;
  double median_us = 0;
};

// Options of one point in the order of the rows; at least one.
struct PointChoice {
  TableRow row;      // of the first option
  std::string held;  // what all options have in common, "fixed_global 256 EP8 routing zipf"
  std::vector<PointOption> options;

  const PointOption* find(const std::string& name) const;
  // Least median; the first on a tie.
  const PointOption& best() const;
  // Whether repeats show the best one to be faster than every other; false with one option.
  bool best_is_shown() const;
};

// Of rows with a number at `path`. `varying`: the axes rows differ in; `choice`: names of those
// that make an option, of which some may not vary. Rows that differ in `repeat` and `run` only are
// repeats.
std::vector<PointChoice> point_choices(const std::vector<TableRow>& rows,
                                       const std::vector<Axis>& varying,
                                       const std::vector<std::string>& choice,
                                       const std::string& path);

}  // namespace epsweep
