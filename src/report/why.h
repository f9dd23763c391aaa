// The answer: what is shown between two EP sizes, and which cause made the difference.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/crossover.h"
#include "report/ep_pairs.h"
#include "report/verdict.h"

namespace epsweep {

enum class PairVerdict {
  difference,     // one is faster, by repeats
  nothing_shown,  // intervals overlap, or too few repeats to tell
  narrow_unable,  // the smaller EP size was not measured: skipped or stopped
  wide_unable,
  neither,
};
inline const std::vector<std::string> kPairVerdictNames = {
    "difference", "nothing_shown", "narrow_unable", "wide_unable", "neither"};

// Of one side, over its repeats.
struct SideNumbers {
  std::vector<double> layer_us;  // p50s, chained
  std::vector<double> tokens_per_s_per_rank;
  double mean_rows_per_expert = 0;
};

struct Why {
  PairVerdict verdict = PairVerdict::neither;
  SideNumbers a, b;
  std::optional<Difference> difference;    // of layer times; of two measured sides
  std::optional<Attribution> attribution;  // of two sides with breakdowns
  // Two sentences: latency and throughput of both with their intervals and rows per expert; then
  // the largest gain and the largest loss, or why none is named.
  std::string text;
};
Why explain(const EpPair& pair);

// By pair the bars of its terms and its verdict; empty for no pairs. Against the smallest EP size
// alone: JSON has all pairs.
std::string why_text(const std::vector<EpPair>& pairs);
// A list with everything of every pair.
Json why_json(const std::vector<EpPair>& pairs);

// The loads between which one EP size comes to win over another, of every ladder of pairs.
struct PairCrossings {
  const EpPair* first = nullptr;  // of the ladder
  std::vector<Crossing> crossings;
};
std::vector<PairCrossings> pair_crossings(const std::vector<EpPair>& pairs);
Json crossings_json(const std::vector<EpPair>& pairs);

}  // namespace epsweep
