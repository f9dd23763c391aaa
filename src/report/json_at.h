// A value of a JSON file together with its place, for strict readers of files people hand in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"

namespace epsweep {

// Of rows or bytes of one rank in one iteration: sums over ranks stay within 64 bits.
inline constexpr std::int64_t kMostCount = 1'000'000'000'000'000;

// Every mistake is one ConfigError "FILE: points[0].ranks[3].clock: what is wrong".
class JsonAt {
 public:
  // `root` must outlive what is read from it.
  JsonAt(const Json& root, const std::string& file)
      : value_(&root), file_(std::make_shared<const std::string>(file)) {}

  [[noreturn]] void refuse(const std::string& what) const;
  const std::string& path() const { return path_; }

  // An object with all of the required keys and none beside them and the optional ones.
  void expect_keys(const std::vector<std::string>& required,
                   const std::vector<std::string>& optional = {}) const;
  bool is_object() const { return value_->is_object(); }
  // Whether an object has the key, and not as null.
  bool has(const std::string& key) const;
  JsonAt at(const std::string& key) const;
  // Of an object, in the file's order.
  std::vector<std::string> keys() const;
  // Of a list with at least one entry.
  std::vector<JsonAt> items() const;

  std::string text() const;  // not empty
  // One of the names; an error names the nearest.
  std::string name_of(const std::vector<std::string>& names) const;
  double number() const;
  // An integer from `least` to `most`.
  std::int64_t count(std::int64_t least = 0, std::int64_t most = kMostCount) const;
  int small_count(int least = 0, int most = INT32_MAX) const;
  std::vector<double> numbers() const;  // of a list with at least one entry
  std::vector<std::int64_t> counts() const;

 private:
  JsonAt(const Json& value, std::shared_ptr<const std::string> file, std::string path)
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}
  JsonAt item(std::size_t index) const;
  void expect_list() const;

  const Json* value_;
  std::shared_ptr<const std::string> file_;
  std::string path_;
};

}  // namespace epsweep
