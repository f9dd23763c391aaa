// Whether repeated runs of two points show that one is faster.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/statistics.h"

namespace epsweep {

// Where the p50 of a point lies, by its repeats: the 95 % interval of their median from 6 repeats
// on, else from the smallest to the largest. Absent for none.
std::optional<Interval> repeats_interval(std::span<const double> p50s);

enum class Shown {
  nothing,  // intervals overlap
  too_few,  // they do not, but would not by chance alone in more than 5 % of such pairs
  faster,   // b takes less time than a
  slower,
};
inline const std::vector<std::string> kShownNames = {"nothing", "too_few", "faster", "slower"};

// Two samples of n and m values of one distribution have no overlap with probability
// 2 * n! m! / (n + m)!, whatever it is: 1 in 10 for 3 and 3, 1 in 35 for 4 and 4.
struct Difference {
  Shown shown = Shown::too_few;
  double ratio = 1;  // median of b / median of a
  Interval a, b;
};

// p50s of all repeats of each; neither may be empty.
Difference difference_between(std::span<const double> a_p50s, std::span<const double> b_p50s);

// "EP32 against EP8: no difference shown (98.0-104.0 against 99.0-101.0 us, 3 and 3 repeats)".
std::string difference_text(const std::string& b_name, const std::string& a_name,
                            std::span<const double> a_p50s_us, std::span<const double> b_p50s_us);

}  // namespace epsweep
