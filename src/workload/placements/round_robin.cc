// Neighbouring experts apart: breaks up hot blocks without knowing any load.
#include "workload/placement.h"

namespace epsweep {
namespace {

std::vector<int> rank_of_expert(int num_experts, int ep_size) {
  std::vector<int> ranks;
  for (int expert = 0; expert < num_experts; ++expert) ranks.push_back(expert % ep_size);
  return ranks;
}

const bool registered = PlacementCatalog::instance().add(
    {"round_robin", "expert e on rank e mod ep_size", rank_of_expert});

}  // namespace
}  // namespace epsweep
