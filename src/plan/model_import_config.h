// Strict reading of a Hugging Face config.json: which key said what, and no two keys disagreeing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace epsweep {

// A value and the key it stands under, with "text_config." in front where nested; several keys
// that say the same are joined by " + ".
template <typename T>
struct Fact {
  std::string key;
  T value;
};

// Looks a key up in text_config and at the top level. null counts as absent; a value of the wrong
// type, and two places or keys with different values, are errors. "a.b" names key b inside map a.
class HfConfig {
 public:
  // Throws ConfigError naming `where`.
  HfConfig(std::string_view text, std::string where);

  // A whole number in [min, max]; a list, as of one entry per layer, counts if all entries agree.
  std::optional<Fact<std::int64_t>> count(const std::vector<std::string>& keys, std::int64_t min,
                                          std::int64_t max) const;
  std::optional<Fact<double>> number(const std::vector<std::string>& keys) const;
  std::optional<Fact<bool>> flag(const std::vector<std::string>& keys) const;
  std::optional<Fact<std::string>> word(const std::vector<std::string>& keys) const;

  bool has_list(const std::string& key) const;
  std::optional<Fact<std::vector<std::string>>> words(const std::string& key) const;
  std::optional<Fact<std::vector<std::int64_t>>> counts(const std::string& key, std::int64_t min,
                                                        std::int64_t max) const;
  std::optional<Fact<Json>> map(const std::string& key) const;

  // The nested model_type first: the language model's own.
  std::vector<std::string> model_types() const;

  [[noreturn]] void fail(const std::string& problem) const;

 private:
  struct Entry {
    std::string key;
    const Json* json = nullptr;
  };
  std::optional<Entry> find(const std::string& key) const;
  template <typename T, typename Read>
  std::optional<Fact<T>> merge(const std::vector<std::string>& keys, const Read& read) const;
  std::int64_t whole(const Entry& entry, std::int64_t min, std::int64_t max) const;
  [[noreturn]] void fail_type(const Entry& entry, const std::string& expected) const;

  std::string where_;
  Json root_;
  const Json* nested_ = nullptr;  // text_config inside root_
};

}  // namespace epsweep
