#include "base/json.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep {
namespace {

std::size_t line_of(std::string_view text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  return static_cast<std::size_t>(std::count(text.begin(), end, '\n')) + 1;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string>> open_objects;
  std::string repeated;
  const auto watch_keys = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    if (event == Json::parse_event_t::key &&
        !open_objects.back().insert(value.get<std::string>()).second) {
      repeated = value.get<std::string>();
    }
    return true;
  };
  try {
    Json result = Json::parse(text.begin(), text.end(), watch_keys);
    if (!repeated.empty()) {
      throw ConfigError(fmt::format("{}: key '{}' appears twice in one object", where, repeated));
    }
    return result;
  } catch (const Json::parse_error& error) {
    throw ConfigError(
        fmt::format("{}:{}: not valid JSON: {}", where, line_of(text, error.byte), error.what()));
  }
}

std::string to_json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace epsweep
