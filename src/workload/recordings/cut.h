// Which part of a recording is used.
#pragma once

#include <cstdint>
#include <string>

namespace epsweep {

// Leaves out the first `skip` items and takes `max` of the rest; 0 takes all of it.
struct Cut {
  std::int64_t skip = 0;
  std::int64_t max = 0;

  bool everything() const { return skip == 0 && max == 0; }
};

struct CutRange {
  std::int64_t begin = 0, end = 0;
};

// Throws ConfigError where the recording is shorter: "where: skip_tokens 5 and max_tokens 10 need
// 15 tokens, 12 are recorded". `items` is the word behind skip_ and max_.
CutRange cut_range(const Cut& cut, std::int64_t num_recorded, const std::string& where,
                   const std::string& items);

}  // namespace epsweep
