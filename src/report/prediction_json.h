// What ceilings predicted of a point beside what was measured.
#pragma once

#include <string>

#include "base/json.h"
#include "report/point_record.h"

namespace epsweep {

// Null without ceilings or workload. Of a point without times what is measured is null.
Json prediction_json(const PointRecordInput& input);
std::string prediction_formula();

}  // namespace epsweep
