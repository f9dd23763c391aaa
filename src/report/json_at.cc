#include "report/json_at.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace epsweep {

void JsonAt::refuse(const std::string& what) const {
  throw ConfigError(fmt::format("{}: {}{}{}", *file_, path_, path_.empty() ? "" : ": ", what));
}

void JsonAt::expect_keys(const std::vector<std::string>& required,
                         const std::vector<std::string>& optional) const {
  if (!value_->is_object()) refuse(fmt::format("{} is not an object", json_excerpt(*value_)));
  std::vector<std::string> known = required;
  known.insert(known.end(), optional.begin(), optional.end());
  for (const auto& [key, value] : value_->items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    const std::string close = nearest(key, known);
    refuse(fmt::format("unknown key '{}'{}", key.substr(0, 80),
                       close.empty() ? "" : ", nearest valid key: '" + close + "'"));
  }
  for (const std::string& key : required) {
    if (!value_->contains(key)) refuse(fmt::format("has no '{}'", key));
  }
}

bool JsonAt::has(const std::string& key) const {
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

JsonAt JsonAt::at(const std::string& key) const {
  if (!value_->is_object()) refuse(fmt::format("{} is not an object", json_excerpt(*value_)));
  const auto found = value_->find(key);
  if (found == value_->end()) refuse(fmt::format("has no '{}'", key));
  return {*found, file_, path_.empty() ? key : path_ + "." + key};
}

std::vector<std::string> JsonAt::keys() const {
  if (!value_->is_object()) refuse(fmt::format("{} is not an object", json_excerpt(*value_)));
  std::vector<std::string> keys;
  for (const auto& [key, value] : value_->items()) keys.push_back(key);
  return keys;
}

JsonAt JsonAt::item(std::size_t index) const {
  return {(*value_)[index], file_, fmt::format("{}[{}]", path_, index)};
}

void JsonAt::expect_list() const {
  if (!value_->is_array()) refuse(fmt::format("{} is not a list", json_excerpt(*value_)));
  if (value_->empty()) refuse("the list is empty");
}

std::vector<JsonAt> JsonAt::items() const {
  expect_list();
  std::vector<JsonAt> items;
  for (std::size_t i = 0; i < value_->size(); ++i) items.push_back(item(i));
  return items;
}

std::string JsonAt::text() const {
  if (!value_->is_string() || value_->get_ref<const std::string&>().empty()) {
    refuse(fmt::format("{} is not a text", json_excerpt(*value_)));
  }
  return value_->get<std::string>();
}

std::string JsonAt::name_of(const std::vector<std::string>& names) const {
  const std::string word = text();
  if (std::ranges::find(names, word) != names.end()) return word;
  const std::string close = nearest(word, names);
  refuse(fmt::format("'{}' is not one of {}{}", word.substr(0, 80), join(names),
                     close.empty() ? "" : "; nearest: '" + close + "'"));
}

double JsonAt::number() const {
  if (!value_->is_number()) refuse(fmt::format("{} is not a number", json_excerpt(*value_)));
  return value_->get<double>();
}

std::int64_t JsonAt::count(std::int64_t least, std::int64_t most) const {
  const bool fits = value_->is_number_integer() &&
                    (!value_->is_number_unsigned() || value_->get<std::uint64_t>() <= INT64_MAX);
  const std::int64_t value = fits ? value_->get<std::int64_t>() : 0;
  if (!fits || value < least || value > most) {
    refuse(fmt::format("{} is not an integer from {} to {}", json_excerpt(*value_), least, most));
  }
  return value;
}

int JsonAt::small_count(int least, int most) const {
  return static_cast<int>(count(least, most));
}

std::vector<double> JsonAt::numbers() const {
  expect_list();
  std::vector<double> numbers;
  numbers.reserve(value_->size());
  for (const Json& value : *value_) {
    if (!value.is_number()) item(numbers.size()).number();  // throws, with the place
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

std::vector<std::int64_t> JsonAt::counts() const {
  std::vector<std::int64_t> counts;
  for (const JsonAt& value : items()) counts.push_back(value.count());
  return counts;
}

}  // namespace epsweep
