// The bytes of a point as records and plans show them.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "costs/point_workload.h"
#include "costs/traffic.h"

namespace epsweep {

// Totals of one direction. Keys about domains are null where these are unknown.
Json traffic_json(const Traffic& traffic);
// {"places", "num_domains", "dispatch", "combine"}.
Json bytes_json(const PointWorkload& work);
// By letter and part, as far as known; null for none.
Json copies_json(const std::optional<CopiesPerToken>& copies);
// For each number format of an exchange {"copy": {...}, "a": {...}, ..., "e": {...}}: payload,
// scale and metadata bytes of one copy, and of the copies that one token needs by that letter.
Json per_token_by_dtype_json(const SweepPoint& point, const std::optional<CopiesPerToken>& copies);

// What the keys of bytes_json() mean.
std::string bytes_formula();

}  // namespace epsweep
