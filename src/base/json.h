// The project's JSON: key order kept, undefined numbers written as null, dots as decimals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace epsweep {

using Json = nlohmann::ordered_json;

// Throws ConfigError naming `where`, the line and what is wrong; a repeated key is an error.
Json parse_json(std::string_view text, const std::string& where);

// One line, no newline at the end; NaN and infinities become null.
std::string to_json_line(const Json& value);

// null for an absent value.
template <typename T>
Json json_or_null(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

}  // namespace epsweep
