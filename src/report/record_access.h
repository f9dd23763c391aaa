// Reading records back: a missing key and null are the same, so older records stay readable.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace epsweep {

// Value at "stages.router.slowest_us.p50"; nullptr where a key is missing or the value is null.
const Json* find_value(const Json& record, std::string_view path);

std::optional<double> find_number(const Json& record, std::string_view path);

// Empty where absent or not text.
std::string find_text(const Json& record, std::string_view path);

// Of a simulated point: all its numbers but those of the routing are made up.
bool is_simulated(const Json& record);
bool is_predicted(const Json& record);
// Predicted, but what its ranks compute by themselves was measured (prediction.label).
bool has_measured_compute(const Json& record);
// Of a measured, simulated or predicted one: those stand in tables.
bool has_row(const Json& record);

// Of transport local_copy, which stands for an exchange without moving anything between ranks.
bool copies_locally(const Json& record);
// That, or of a point that nobody asked for with something else replaced (plan/bridges.h).
bool is_counterfactual(const Json& record);

// Numbers shortest-exact with a dot, text as it is, lists and objects as JSON; empty for absent.
std::string plain_text(const Json* value);

// "zipf(zipf_alpha=1.2)" of a record.
std::string routing_text(const Json& record);

// "eplb", or "map(my_map.yaml 12345678)" of a record: file and beginning of its checksum.
std::string placement_text(const Json& record);

}  // namespace epsweep
