// What the two grouped GEMMs of a point's expert FFN did, as records show it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "plan/model_shape.h"

namespace epsweep {

// One of the two, in one layer of one iteration on one rank.
struct GemmCounts {
  std::int64_t kernel_calls = 0;  // launches, library calls, copies
  std::int64_t routed_rows = 0;
  std::int64_t computed_rows = 0;    // executed: routed rows plus the kernel's padding
  std::int64_t stored_rows = 0;      // rows of memory they are read from
  std::int64_t workspace_bytes = 0;  // besides weights, inputs and outputs
  Json choice;  // {"chosen", "candidates"} of a kernel that picks among others, else null
};

// Of one group.
struct FfnGemms {
  std::vector<std::vector<GemmCounts>> gate_up, down;  // [layer][EP rank]
};

// {"gate_up", "down"}: sizes, rows per expert, sums, and the counts of every layer and rank. Null
// where nothing ran. `rows` are rows per expert of all layers.
Json m_distribution_json(const ModelShape& model, const std::vector<std::int64_t>& rows,
                         const std::optional<FfnGemms>& gemms);
std::string m_distribution_formula();

}  // namespace epsweep
