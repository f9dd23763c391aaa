// The project's JSON: key order kept, undefined numbers written as null, dots as decimals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace epsweep {

using Json = nlohmann::ordered_json;

// For objects with many keys: adding a key costs log(keys), where Json looks through all of them.
using SortedJson = nlohmann::json;

// Nesting and keys of one object beyond these are refused: writing out deeper values would
// overflow the stack, and objects of Json take time in the square of their keys.
inline constexpr std::size_t kMaxJsonDepth = 100;
inline constexpr std::size_t kMaxJsonKeys = 10'000;

// Throws ConfigError naming `where`, the line and what is wrong; a repeated key is an error.
Json parse_json(std::string_view text, const std::string& where);
// The same without the limit of keys.
SortedJson parse_sorted_json(std::string_view text, const std::string& where);

// One line, no newline at the end; NaN and infinities become null.
std::string to_json_line(const Json& value);
// The same, cut off where it gets too long for a message.
std::string json_excerpt(const Json& value);

// null for an absent value.
template <typename T>
Json json_or_null(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

}  // namespace epsweep
