// Time that nobody waits for.
#pragma once

#include <cmath>
#include <cstdint>

namespace epsweep {

// 2^-40 s each, 0.9 ps: any time below 2^13 s, and any difference of two, is a double without
// rounding. So an equation between reported times holds to the last bit or is wrong.
using Ticks = std::int64_t;
inline constexpr double kTickS = 0x1p-40;

inline Ticks ticks_of(double seconds) {
  return std::llround(seconds / kTickS);
}
inline double seconds_of(Ticks ticks) {
  return static_cast<double>(ticks) * kTickS;
}

}  // namespace epsweep
