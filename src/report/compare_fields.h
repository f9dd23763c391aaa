// What must be the same on both sides before their times say anything about what is compared.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "report/compare_match.h"

namespace epsweep {

// The fields that `--allow` knows:
//   concurrency       which token count is held, of points or of all points
//   dtype, model      unless they are what was chosen
//   hardware          backend and device of the runs, the CPU model too where times were measured;
//                     of simulated points the declared hardware; also where a run does not say
//   regime            of the times a pair has: only `aligned`, or `chained` too
//   routing_checksum  equal routing axes must have drawn equal routings
//   state             measured against simulated
inline const std::vector<std::string> kComparedFields = {
    "concurrency", "dtype", "hardware", "model", "regime", "routing_checksum", "state"};

struct FieldDifference {
  std::string field, text;  // "hardware", "device 'x' in A, 'y' in B"
};

// At most one for each field, in alphabetical order. `chosen`: axes that are compared on purpose.
std::vector<FieldDifference> field_differences(const CompareSide& a, const CompareSide& b,
                                               const Matching& matching,
                                               const std::set<std::string>& chosen);

// Versions, build, world and environment of two runs where they differ: to be known, not refused.
std::vector<FieldDifference> run_differences(const RunData& a, const RunData& b);

}  // namespace epsweep
