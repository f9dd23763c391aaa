#include "plan/model_import_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace epsweep {
namespace {

constexpr std::string_view kNested = "text_config";

const Json* member(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// The outer model and its language model may name themselves, and a type, each in their own way.
bool may_differ(const std::string& key) {
  return key == "model_type" || key == "dtype" || key == "torch_dtype";
}

// What a message shows of a value; lists of a whole model's layers would drown it.
std::string shown(const Json& json) {
  constexpr std::size_t kMaxShown = 60;
  const std::string text = to_json_line(json);
  return text.size() <= kMaxShown ? text : text.substr(0, kMaxShown) + "...";
}

}  // namespace

HfConfig::HfConfig(std::string_view text, std::string where)
    : where_(std::move(where)), root_(parse_json(text, where_)) {
  if (!root_.is_object()) fail("not a config: expected a JSON object");
  nested_ = member(root_, std::string(kNested));
  if (nested_ != nullptr && !nested_->is_object()) {
    fail_type({std::string(kNested), nested_}, "an object");
  }
}

void HfConfig::fail(const std::string& problem) const {
  throw ConfigError(where_ + ": " + problem);
}

void HfConfig::fail_type(const Entry& entry, const std::string& expected) const {
  fail(fmt::format("{}: expected {}, found {}", entry.key, expected, shown(*entry.json)));
}

std::optional<HfConfig::Entry> HfConfig::find(const std::string& key) const {
  const std::size_t dot = key.find('.');
  const auto look = [&](const Json* object, const std::string& prefix) -> Entry {
    if (object == nullptr) return {};
    const std::string first = key.substr(0, dot);
    const Json* found = member(*object, first);
    if (found != nullptr && dot != std::string::npos) {
      if (!found->is_object()) fail_type({prefix + first, found}, "an object");
      found = member(*found, key.substr(dot + 1));
    }
    return {prefix + key, found};
  };
  const Entry inner = look(nested_, std::string(kNested) + ".");
  const Entry outer = look(&root_, "");
  if (inner.json == nullptr) return outer.json == nullptr ? std::nullopt : std::optional(outer);
  if (outer.json != nullptr && *outer.json != *inner.json && !may_differ(key)) {
    fail(fmt::format("'{}' says {} but '{}' says {}", outer.key, shown(*outer.json), inner.key,
                     shown(*inner.json)));
  }
  return inner;
}

template <typename T, typename Read>
std::optional<Fact<T>> HfConfig::merge(const std::vector<std::string>& keys,
                                       const Read& read) const {
  std::optional<Fact<T>> merged;
  for (const std::string& key : keys) {
    const std::optional<Entry> entry = find(key);
    if (!entry.has_value()) continue;
    T value = read(*entry);
    if (!merged.has_value()) {
      merged = Fact<T>{entry->key, std::move(value)};
    } else if (merged->value != value) {
      fail(fmt::format("'{}' says {} but '{}' says {}", merged->key, shown(Json(merged->value)),
                       entry->key, shown(Json(value))));
    } else {
      merged->key += " + " + entry->key;
    }
  }
  return merged;
}

std::int64_t HfConfig::whole(const Entry& entry, std::int64_t min, std::int64_t max) const {
  const Json& json = *entry.json;
  // A value above int64 is stored unsigned and would turn negative.
  const bool fits = json.is_number_integer() &&
                    (!json.is_number_unsigned() || json.get<std::uint64_t>() <= INT64_MAX);
  if (!fits) fail_type(entry, "a whole number");
  const auto value = json.get<std::int64_t>();
  if (value < min || value > max) {
    fail(fmt::format("{}: {} is outside {} to {}", entry.key, value, min, max));
  }
  return value;
}

std::optional<Fact<std::int64_t>> HfConfig::count(const std::vector<std::string>& keys,
                                                  std::int64_t min, std::int64_t max) const {
  return merge<std::int64_t>(keys, [&](const Entry& entry) {
    const Json& json = *entry.json;
    if (!json.is_array()) return whole(entry, min, max);
    if (json.empty()) fail_type(entry, "a whole number");
    const std::int64_t first = whole({entry.key, &json[0]}, min, max);
    for (const Json& item : json) {
      if (whole({entry.key, &item}, min, max) == first) continue;
      fail(
          fmt::format("{}: the list holds different values ({} and {}); layers or experts of "
                      "different shapes are not supported",
                      entry.key, first, shown(item)));
    }
    return first;
  });
}

std::optional<Fact<double>> HfConfig::number(const std::vector<std::string>& keys) const {
  return merge<double>(keys, [&](const Entry& entry) {
    if (!entry.json->is_number()) fail_type(entry, "a number");
    return entry.json->get<double>();
  });
}

std::optional<Fact<bool>> HfConfig::flag(const std::vector<std::string>& keys) const {
  return merge<bool>(keys, [&](const Entry& entry) {
    if (!entry.json->is_boolean()) fail_type(entry, "true or false");
    return entry.json->get<bool>();
  });
}

std::optional<Fact<std::string>> HfConfig::word(const std::vector<std::string>& keys) const {
  return merge<std::string>(keys, [&](const Entry& entry) {
    if (!entry.json->is_string()) fail_type(entry, "a word");
    return entry.json->get<std::string>();
  });
}

bool HfConfig::has_list(const std::string& key) const {
  const std::optional<Entry> entry = find(key);
  return entry.has_value() && entry->json->is_array();
}

std::optional<Fact<std::vector<std::string>>> HfConfig::words(const std::string& key) const {
  return merge<std::vector<std::string>>({key}, [&](const Entry& entry) {
    const bool good =
        entry.json->is_array() && std::all_of(entry.json->begin(), entry.json->end(),
                                              [](const Json& item) { return item.is_string(); });
    if (!good) fail_type(entry, "a list of words");
    return entry.json->get<std::vector<std::string>>();
  });
}

std::optional<Fact<std::vector<std::int64_t>>> HfConfig::counts(const std::string& key,
                                                                std::int64_t min,
                                                                std::int64_t max) const {
  return merge<std::vector<std::int64_t>>({key}, [&](const Entry& entry) {
    if (!entry.json->is_array()) fail_type(entry, "a list of whole numbers");
    std::vector<std::int64_t> values;
    for (const Json& item : *entry.json) values.push_back(whole({entry.key, &item}, min, max));
    return values;
  });
}

std::optional<Fact<Json>> HfConfig::map(const std::string& key) const {
  return merge<Json>({key}, [&](const Entry& entry) {
    if (!entry.json->is_object()) fail_type(entry, "an object");
    return *entry.json;
  });
}

std::vector<std::string> HfConfig::model_types() const {
  std::vector<std::string> types;
  for (const Json* object : {nested_, static_cast<const Json*>(&root_)}) {
    const Json* type = object == nullptr ? nullptr : member(*object, "model_type");
    if (type == nullptr) continue;
    if (!type->is_string()) fail_type({"model_type", type}, "a word");
    types.push_back(type->get<std::string>());
  }
  return types;
}

}  // namespace epsweep
