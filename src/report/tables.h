// The report people read, made from records alone: a run prints what a later re-reading prints.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/result_file.h"

namespace epsweep {

// For each run: one group of aligned tables per (model, concurrency mode), EP sizes and loads as
// rows, and beneath it what was not measured and why. Runs whose run.json has the same `identity`
// share tables, with the directory as a column.
std::string report_text(const std::vector<RunData>& runs);

// A JSON array, one record per line.
std::string records_json(const std::vector<Json>& records);

// {"points": records, one per line, and each member of `parts`}: what the report's text is made of.
std::string report_json(const std::vector<Json>& records, const Json& parts);

}  // namespace epsweep
