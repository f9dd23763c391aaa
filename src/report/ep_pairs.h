// Which measured points stand for the same experiment at two EP sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/attribution.h"

namespace epsweep {

// All repeats of one EP size and load of a series.
struct PairSide {
  int ep_size = 0;
  std::int64_t tokens_global = 0;
  std::vector<const Json*> records;   // with times, by repeat
  std::vector<Breakdown> breakdowns;  // theirs, as far as they have one
  std::string why_not;                // "stopped: kv_memory: ..." where there are no times
};

// A series' two EP sizes at one load of one concurrency mode, the smaller one first.
struct EpPair {
  std::string held;    // "fixed_per_rank 64", and what tells series apart
  std::string series;  // the latter alone: ", zipf", or nothing
  std::string mode;
  std::int64_t load = 0;  // tokens_global or tokens_per_rank, as the mode says
  PairSide a, b;
  // Corners that were measured, see Corners; of points of any mode with those tokens.
  std::optional<PairSide> wide_low, narrow_high;

  Corners corners() const;
};

// Every pair of EP sizes, in the order of the records; listed loads have no pairs. Points that only
// bridge others (load_from `bridge`) make none of their own, and local copies none at all: they are
// no exchange that an EP size could win by. Records of several runs are paired where their `run` is
// equal or absent.
std::vector<EpPair> ep_pairs(const std::vector<const Json*>& records);
std::vector<EpPair> ep_pairs(const std::vector<Json>& records);

}  // namespace epsweep
