// Loads of a series, read back from records: which one is the highest within its limits, and what
// stopped the ones above it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/table_columns.h"

namespace epsweep {

// Every axis but the load and how often it was tried; rows of different run directories are of
// different series. As plan/ladder.h's, of a record.
std::string series_key_of(const TableRow& row);

struct SeriesEnd {
  // tokens_global. admitted: highest load that ran within all limits, below every one that did not.
  std::optional<std::int64_t> admitted, refused, last_run;
  // A StopKind's name; empty where the records do not tell: a signal cut the series short, or its
  // highest load went wrong.
  std::string stopped_by;
  std::string reason;     // with the numbers; of ladder_end empty
  std::string cut_short;  // reason of a point that ended before its turn, without a limit
};
// Of the rows of one series, in any order.
SeriesEnd series_end(const std::vector<TableRow>& rows);

}  // namespace epsweep
