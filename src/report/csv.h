// points.csv: one line per record, the useful scalars in columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace epsweep {

// RFC 4180: in quotes, with inner quotes doubled, where the text holds a comma, quote or line end.
std::string csv_field(std::string_view text);

// Header and one line per record, lines ended by "\n", decimals with a dot whatever the locale,
// absent values empty. Columns in this order: run (where records
// name theirs), identity (index, id, state, reason), the axes of the
// point, group layout, layer times, stage times, metrics (by name, of all records), rows per
// expert and rank, bytes by letter, FFN work and kernel calls, memory, check, load, harness time,
// clocks, files and warnings.
std::string points_csv(const std::vector<Json>& records);

}  // namespace epsweep
