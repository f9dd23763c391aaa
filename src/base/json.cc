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

// Looks at keys and nesting while a text is parsed, and throws at the first that may not be.
template <typename J>
class ShapeWatch {
 public:
  ShapeWatch(const std::string& where, std::size_t max_keys) : where_(where), max_keys_(max_keys) {}

  void see(int depth, typename J::parse_event_t event, const J& value) {
    using Event = typename J::parse_event_t;
    if (depth > kMaxJsonDepth) {
      throw ConfigError(fmt::format("{}: nested more than {} deep", where_, kMaxJsonDepth));
    }
    if (event == Event::object_start) open_objects_.emplace_back();
    if (event == Event::object_end) open_objects_.pop_back();
    if (event == Event::key) see_key(value.template get_ref<const std::string&>());
  }

 private:
  void see_key(const std::string& key) {
    std::set<std::string>& keys = open_objects_.back();
    if (!keys.insert(key).second) {
      throw ConfigError(
          fmt::format("{}: key '{}' appears twice in one object", where_, key.substr(0, 80)));
    }
    if (keys.size() > max_keys_) {
      throw ConfigError(fmt::format("{}: an object with more than {} keys", where_, max_keys_));
    }
  }

  std::string where_;
  std::size_t max_keys_;
  std::vector<std::set<std::string>> open_objects_;
};

template <typename J>
J parse(std::string_view text, const std::string& where, std::size_t max_keys) {
  ShapeWatch<J> watch(where, max_keys);
  const auto callback = [&watch](int depth, typename J::parse_event_t event, J& value) {
    watch.see(depth, event, value);
    return true;
  };
  try {
    return J::parse(text.begin(), text.end(), callback);
  } catch (const nlohmann::detail::exception& error) {
    std::size_t byte = 0;
    if (const auto* place = dynamic_cast<const typename J::parse_error*>(&error)) {
      byte = place->byte;
    }
    throw ConfigError(
        fmt::format("{}:{}: not valid JSON: {}", where, line_of(text, byte), error.what()));
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  return parse<Json>(text, where, kMaxJsonKeys);
}

SortedJson parse_sorted_json(std::string_view text, const std::string& where) {
  return parse<SortedJson>(text, where, SIZE_MAX);
}

std::string to_json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_excerpt(const Json& value) {
  constexpr std::size_t kLongest = 120;
  std::string text = to_json_line(value);
  if (text.size() > kLongest) {
    // Not in the middle of a character.
    std::size_t end = kLongest;
    while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text = text.substr(0, end) + "...";
  }
  return text;
}

}  // namespace epsweep
