// How ranks measure at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace epsweep {

// Ranks that will work together measure together: a rate that one of them has while the others rest
// is not one it has in a point.
struct RanksTogether {
  // Maximum over them; also how they start a measurement together. So many calls on one rank, so
  // many on all: what a rank cannot do it says by kFailed.
  std::function<std::int64_t(std::int64_t)> all_max;
  // Told before anything that may take long.
  std::function<void(const std::string& phase)> enter_phase;

  void align() const { all_max(0); }
};

inline constexpr std::int64_t kFailed = std::int64_t{1} << 62;

inline std::int64_t nanoseconds(double seconds) {
  return static_cast<std::int64_t>(seconds * 1e9);
}

}  // namespace epsweep
