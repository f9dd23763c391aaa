// Ranks that are slow although they have no more to do than others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace epsweep {

struct SlowRank {
  int row = 0;
  double time_over_median = 1;  // of expert_ffn
  double rows_over_median = 1;  // received rows, all layers
};

// Rows whose expert_ffn takes more than 1.2 medians while they have at most 1.05 medians of rows:
// what is slow there is the host or the device, not the routing. None where the median is 0. Both
// spans are [ranks].
std::vector<SlowRank> slow_ranks(std::span<const double> ffn_p50_s,
                                 std::span<const std::int64_t> routed_rows);

// "rank 3: expert_ffn takes 1.40 times the median rank's with 0.98 times its rows: its host or
// device is slow, not the routing".
std::string slow_rank_text(const SlowRank& rank, int world_rank);

}  // namespace epsweep
