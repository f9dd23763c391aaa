// The numbers of a pair of points side by side, and what repeats show of their difference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/statistics.h"
#include "report/compare_match.h"
#include "report/metric.h"

namespace epsweep {

// What repeats show, by difference_between() of verdict.h.
enum class Change {
  nothing,  // the intervals of the repeats overlap
  too_few,  // they do not, but so few repeats part by chance in more than 5 % of such pairs
  better,   // B against A
  worse,
};
inline const std::vector<std::string> kChangeNames = {"nothing", "too_few", "better", "worse"};

// Outcomes are what regressions and improvements are told of; parts say where they come from.
enum class Rank { outcome, part };

// One value for each repeat that has it: p50s, or rates made of them.
struct SideValues {
  std::vector<double> values;
  double median = 0;
  Interval interval;  // of the median, see repeats_interval()
};

struct QuantityChange {
  std::string name;    // "layer_p50_us"
  std::string unit;    // "us"
  std::string regime;  // "chained"; "aligned in A, chained in B" where that was allowed
  Better better = Better::lower;
  Rank rank = Rank::part;
  SideValues a, b;
  std::optional<double>
      relative;  // median of B / median of A - 1; absent where A's is 0 and B's not
  Change change = Change::nothing;

  double difference() const { return b.median - a.median; }
  // How much worse B is, as a share of A: time that was added, or rate that was lost. Negative
  // where it is better; absent as `relative` is.
  std::optional<double> worse_by() const;
};

// Outcomes: layer_p50_us (chained) and tokens_per_s_per_rank; where neither side has chained times
// all_stages_p50_us is one. Parts: all_stages_p50_us and every stage, of exchanges the transfer,
// which waiting is not in. What one side lacks is left out, but the layer: where one side was timed
// aligned only, its sum of stages stands in, and `regime` says so.
std::vector<QuantityChange> compare_quantities(const MatchedPair& pair);

}  // namespace epsweep
