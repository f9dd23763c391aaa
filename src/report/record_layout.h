// Which ranks a record is of, and how it is called where points follow one another.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"
#include "report/arrival.h"

namespace epsweep {

// The groups a record of a run was measured in. Throws ConfigError beginning with `where` for a
// record that says nothing sensible about them.
GroupLayout layout_of_record(const Json& record, const std::string& where);

// World ranks by row of its lists "..._of_rank": of a run's record or a replayed one.
std::vector<int> ranks_of_record(const Json& record, const std::string& where);

// "EP8, 256 tokens of a group, zipf(zipf_alpha=1.2), eplb, ..., repeat 0".
std::string point_heading(const Json& record);

// Of a timing table whose rows are active_ranks(layout), on one clock.
TableRows rows_of_layout(const GroupLayout& layout);

}  // namespace epsweep
