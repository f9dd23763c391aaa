// A series of times in one line of text.
#pragma once

#include <span>
#include <string>

namespace epsweep {

// What the lowest and the highest block stand for; values beyond either are drawn as it.
struct SparkScale {
  double low = 0, high = 0;
};
// From the smallest value to the one that 95 % do not exceed, so that a spike does not flatten the
// rest. `values` is not empty.
SparkScale spark_scale(std::span<const double> values);

// Unicode blocks, at most `max_blocks` of them: where there are more values, each block is the
// largest of its neighbours. Values that are all the same give the lowest block.
std::string sparkline(std::span<const double> values, const SparkScale& scale,
                      std::size_t max_blocks);

}  // namespace epsweep
