// Hot experts replicated, and slots packed so that ranks carry equal loads.
#include "workload/eplb.h"

#include <algorithm>
#include <numeric>

#include "workload/placement.h"

namespace epsweep {
namespace {

// Whether experts in order, in equal blocks, already load all ranks the same.
bool is_even_in_blocks(std::span<const double> loads, int ep_size) {
  const std::size_t block = loads.size() / static_cast<std::size_t>(ep_size);
  const auto sum = [&](std::size_t at) {
    const auto begin = loads.begin() + static_cast<std::ptrdiff_t>(at);
    return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(block), 0.0);
  };
  for (std::size_t at = block; at < loads.size(); at += block) {
    if (sum(at) != sum(0)) return false;
  }
  return true;
}

// Where nothing is known all experts count the same, so that replicas are spread over them.
std::vector<int> expert_of_slot(const PlacementContext& context) {
  std::vector<double> loads(context.rows_per_expert.begin(), context.rows_per_expert.end());
  if (std::ranges::all_of(loads, [](double load) { return load == 0; })) {
    loads.assign(static_cast<std::size_t>(context.num_experts), 1.0);
  }
  if (context.redundant_slots == 0 && is_even_in_blocks(loads, context.ep_size)) {
    std::vector<int> unmoved(loads.size());
    std::iota(unmoved.begin(), unmoved.end(), 0);
    return unmoved;
  }
  return eplb_slots(loads, context.num_slots(), context.ep_size, Colocation::avoided);
}

const bool registered = PlacementCatalog::instance().add(
    {"eplb", "replicas for the most loaded experts, slots packed greedily; takes redundant_slots",
     SlotRule::equal_per_rank, FittedTo::rows, expert_of_slot});

}  // namespace
}  // namespace epsweep
