#include "workload/placement.h"

#include "base/error.h"

namespace epsweep {

Placement make_placement(const std::string& name, int num_experts, int ep_size) {
  EPS_EXPECT(num_experts >= 1 && ep_size >= 1, "placement of no experts or on no ranks");
  Placement placement;
  placement.num_experts = num_experts;
  placement.ep_size = ep_size;
  placement.rank_of_expert =
      PlacementCatalog::instance().at(name).rank_of_expert(num_experts, ep_size);
  EPS_EXPECT(placement.rank_of_expert.size() == static_cast<std::size_t>(num_experts),
             "placement " + name + " forgot or invented experts");
  placement.experts_of_rank.resize(static_cast<std::size_t>(ep_size));
  for (int expert = 0; expert < num_experts; ++expert) {
    const int rank = placement.rank_of_expert[static_cast<std::size_t>(expert)];
    EPS_EXPECT(rank >= 0 && rank < ep_size,
               "placement " + name + " names a rank that is not there");
    std::vector<int>& local = placement.experts_of_rank[static_cast<std::size_t>(rank)];
    placement.local_index_of_expert.push_back(static_cast<int>(local.size()));
    local.push_back(expert);
  }
  return placement;
}

std::vector<std::int64_t> rows_per_rank(const Placement& placement,
                                        const std::vector<std::int64_t>& rows_per_expert) {
  EPS_EXPECT(rows_per_expert.size() == placement.rank_of_expert.size(),
             "another number of row counts than experts");
  std::vector<std::int64_t> rows(static_cast<std::size_t>(placement.ep_size), 0);
  for (std::size_t expert = 0; expert < rows_per_expert.size(); ++expert) {
    rows[static_cast<std::size_t>(placement.rank_of_expert[expert])] += rows_per_expert[expert];
  }
  return rows;
}

}  // namespace epsweep
