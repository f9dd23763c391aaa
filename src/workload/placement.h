// Which EP rank owns which expert.
#pragma once

#include <string>
#include <vector>

#include "base/registry.h"

namespace epsweep {

struct Placement {
  int num_experts = 0;
  int ep_size = 0;
  std::vector<int> rank_of_expert;                // [num_experts]
  std::vector<int> local_index_of_expert;         // [num_experts], position on its rank
  std::vector<std::vector<int>> experts_of_rank;  // [ep_size], in local order; may be empty
};

struct PlacementEntry {
  std::string name;
  std::string summary;
  // Owning EP rank of every expert; local order is by expert id.
  std::vector<int> (*rank_of_expert)(int num_experts, int ep_size) = nullptr;
};

using PlacementCatalog = Registry<PlacementEntry>;

// Every expert is owned exactly once and rank sizes differ by at most one in the shipped
// placements; ranks beyond num_experts own none.
Placement make_placement(const std::string& name, int num_experts, int ep_size);

// Rows that land on each EP rank.
std::vector<std::int64_t> rows_per_rank(const Placement& placement,
                                        const std::vector<std::int64_t>& rows_per_expert);

}  // namespace epsweep
