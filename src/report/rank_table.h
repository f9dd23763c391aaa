// The ranks of one point, one a row: own times, rows, waiting, and how its iterations went.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/timing_table.h"

namespace epsweep {

enum class RankRows { few, all };

// At most kMostRows rows: of more ranks the slowest and the fastest ones, slowest first.
inline constexpr std::size_t kMostRows = 64, kSlowestRows = 32, kFastestRows = 8;

// Positions to show, of times by position.
std::vector<std::size_t> rows_to_show(const std::vector<double>& times, RankRows rows);

// Of a run's measured record and its aligned times. `where` begins the ConfigError for a table that
// is not of the record's ranks. Empty for a record without times.
std::string rank_table(const Json& record, const TimingTable& times, RankRows rows,
                       const std::string& where);

}  // namespace epsweep
