#include "report/sparkline.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/statistics.h"

namespace epsweep {
namespace {

constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

const char* block_of(double value, const SparkScale& scale) {
  if (!(scale.high > scale.low) || !(value > scale.low)) return kBlocks.front();
  const double share = std::min((value - scale.low) / (scale.high - scale.low), 1.0);
  const auto level = static_cast<std::size_t>(share * static_cast<double>(kBlocks.size()));
  return kBlocks[std::min(level, kBlocks.size() - 1)];
}

}  // namespace

SparkScale spark_scale(std::span<const double> values) {
  EPS_EXPECT(!values.empty(), "a scale of no values");
  return {.low = *std::ranges::min_element(values), .high = nearest_rank(values, 0.95)};
}

std::string sparkline(std::span<const double> values, const SparkScale& scale,
                      std::size_t max_blocks) {
  EPS_EXPECT(max_blocks > 0, "a line without room");
  const std::size_t num_blocks = std::min(values.size(), max_blocks);
  std::string line;
  for (std::size_t block = 0; block < num_blocks; ++block) {
    const std::size_t begin = block * values.size() / num_blocks;
    const std::size_t end = (block + 1) * values.size() / num_blocks;
    line += block_of(*std::ranges::max_element(values.subspan(begin, end - begin)), scale);
  }
  return line;
}

}  // namespace epsweep
