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

// Looks at keys and nesting before anything is built, and throws at the first that may not be. Not
// a parser callback: the library's goes through all earlier members whenever one ends.
class ShapeCheck {
 public:
  ShapeCheck(const std::string& where, std::size_t max_keys) : where_(where), max_keys_(max_keys) {}

  // The library's names for what it meets; false ends the pass.
  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(std::int64_t) { return true; }
  bool number_unsigned(std::uint64_t) { return true; }
  bool number_float(double, const std::string&) { return true; }
  bool string(std::string&) { return true; }
  template <typename Bytes>
  bool binary(Bytes&) {
    return true;
  }
  bool start_object(std::size_t) { return open(); }
  bool start_array(std::size_t) { return open(); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& key) {
    std::set<std::string>& keys = keys_of_open_.back();
    if (!keys.insert(key).second) {
      throw ConfigError(
          fmt::format("{}: key '{}' appears twice in one object", where_, key.substr(0, 80)));
    }
    if (keys.size() > max_keys_) {
      throw ConfigError(fmt::format("{}: an object with more than {} keys", where_, max_keys_));
    }
    return true;
  }
  // The parser itself says what is wrong.
  template <typename Error>
  bool parse_error(std::size_t, const std::string&, const Error&) {
    return false;
  }

 private:
  bool open() {
    if (keys_of_open_.size() >= kMaxJsonDepth) {
      throw ConfigError(fmt::format("{}: nested more than {} deep", where_, kMaxJsonDepth));
    }
    keys_of_open_.emplace_back();
    return true;
  }
  bool close() {
    keys_of_open_.pop_back();
    return true;
  }

  std::string where_;
  std::size_t max_keys_;
  std::vector<std::set<std::string>> keys_of_open_;  // of arrays none
};

template <typename J>
J parse(std::string_view text, const std::string& where, std::size_t max_keys) {
  ShapeCheck check(where, max_keys);
  J::sax_parse(text.begin(), text.end(), &check);
  try {
    return J::parse(text.begin(), text.end());
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
