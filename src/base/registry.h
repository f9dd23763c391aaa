// A catalog: entries register themselves at start-up and are found by name.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace epsweep {

// Entry must have a std::string member `name`. Entries come back sorted by name, so the order of
// static initialisation never shows.
template <typename Entry>
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  // Returns a value so that a namespace-scope constant can run it. A duplicate ends the program:
  // it is a build mistake, and there is nobody to catch an exception before main().
  bool add(Entry entry) {
    const std::string name = entry.name;
    if (!entries_.emplace(name, std::move(entry)).second) {
      std::fprintf(stderr, "two catalog entries are called '%s'\n", name.c_str());
      std::abort();
    }
    return true;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, entry] : entries_) result.push_back(name);
    return result;
  }

  bool contains(const std::string& name) const { return entries_.count(name) != 0; }

  const Entry& at(const std::string& name) const {
    const auto found = entries_.find(name);
    EPS_EXPECT(found != entries_.end(), "no catalog entry called '" + name + "'");
    return found->second;
  }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace epsweep
