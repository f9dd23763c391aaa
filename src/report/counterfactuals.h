// What a layer takes with one thing of it replaced, beside what it takes as it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/table_columns.h"
#include "report/verdict.h"

namespace epsweep {

enum class Replaced { routing, placement, exchange };
inline const std::vector<std::string> kReplacedNames = {"routing", "placement", "exchange"};

// A point with times and the one that stands beside it, over the repeats that have both.
struct Counterfactual {
  const Json* point = nullptr;    // record of the first repeat, as it is
  const Json* instead = nullptr;  // the same, with one thing replaced
  Replaced replaced = Replaced::exchange;
  std::vector<double> point_us, instead_us;  // by repeat: layer p50, chained
  // By repeat, aligned: transfers of count exchange, dispatch and combine. Of an exchange that is
  // replaced, and only where all repeats have their parts.
  std::vector<double> point_exchange_us, instead_exchange_us;

  // Instead minus as it is, of each repeat: what ran close to each other.
  std::vector<double> differences_us() const;
  // Of those, by repeats_interval(); absent with one repeat.
  std::optional<Interval> interval() const;
};

// Rows that differ in what a counterfactual replaces and in nothing else, of one run directory and
// repeat; by load and EP size, else in the order of the counterfactual ones. Those are points that
// nobody asked for (load_from `counterfactual`) and all of transport local_copy, which stands
// beside every other transport. Directories repeat each other, unless records say a `run`; second
// attempts are no repeats.
std::vector<Counterfactual> counterfactuals_of(const std::vector<TableRow>& rows);

// Empty for none.
std::string counterfactuals_text(const std::vector<TableRow>& rows);
// Of records that say their run themselves, where they are of several.
Json counterfactuals_json(const std::vector<Json>& records);

}  // namespace epsweep
