// Which points of two sides are the same experiment but for what is compared.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "report/compare_sides.h"

namespace epsweep {

// Repeats of one point of each side, records with times only.
struct MatchedPair {
  std::vector<const Json*> a, b;
};

// A point that has no partner, or did not get as far as times.
struct LonePoint {
  const Json* record = nullptr;
  int repeats = 1;  // records of this point and this end
  std::string why;  // "no such point in B", "skipped: ...", "B: skipped: ..."
};

struct Matching {
  std::vector<MatchedPair> pairs;  // in the order of A
  std::vector<LonePoint> only_in_a, only_in_b;
  std::vector<std::string> unknown_axes;  // that points of one side only have: not matched by
};

// Axes that partners may differ in: those the two sides choose differently, those in `across`, and
// what follows from them (a capacity factor from the transport). Throws ConfigError for an axis of
// `across` that points of neither side have.
std::set<std::string> free_axes(const CompareSide& a, const CompareSide& b,
                                const std::vector<std::string>& across);

// Points are partners where all their axes are equal but repeat, index, hardware (which is compared
// apart) and the free ones. A load is its `tokens` (C of a group or of a rank, whichever is held);
// its `tokens_global` where the concurrency mode is free.
// Throws ConfigError naming the axis to choose by where a side has several points for one of the
// other side's, and for a record that stands in a run twice.
Matching match_points(const CompareSide& a, const CompareSide& b,
                      const std::set<std::string>& free);

// "tokens (64 in A, 128 in B); ...": axes that have no value in common. Those in `free` and those
// that follow from others are left out.
std::vector<std::string> axes_apart(const CompareSide& a, const CompareSide& b,
                                    const std::set<std::string>& free);

// Whether no record of A has the same value of the axis as any of B.
bool is_apart(const CompareSide& a, const CompareSide& b, const std::string& axis);

}  // namespace epsweep
