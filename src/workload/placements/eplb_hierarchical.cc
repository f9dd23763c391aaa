// As eplb, but whole expert groups to hosts first: routers that keep a token within few groups then
// keep it within few hosts. The price is balance, more of it the wider the group.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/plan.h"
#include "workload/eplb.h"
#include "workload/placements/fitted_loads.h"

namespace epsweep {
namespace {

std::vector<int> divisors(int number) {
  std::vector<int> result;
  for (int candidate = 1; candidate <= number; ++candidate) {
    if (number % candidate == 0) result.push_back(candidate);
  }
  return result;
}

int num_hosts(const PlacementContext& context) {
  return context.host_of_rank.empty() ? 1 : std::ranges::max(context.host_of_rank) + 1;
}

// Blocks of ranks that were filled host by host, to the EP ranks that live on those hosts.
std::vector<int> to_ranks_of_hosts(const std::vector<int>& slots, const PlacementContext& context) {
  const auto room = static_cast<std::ptrdiff_t>(slots.size()) / context.ep_size;
  const std::ptrdiff_t ranks_per_host = context.ep_size / num_hosts(context);
  std::vector<std::ptrdiff_t> used(static_cast<std::size_t>(num_hosts(context)), 0);
  std::vector<int> experts;
  for (const int host : context.host_of_rank) {
    const std::ptrdiff_t rank = host * ranks_per_host + used[static_cast<std::size_t>(host)]++;
    const auto begin = slots.begin() + rank * room;
    experts.insert(experts.end(), begin, begin + room);
  }
  return experts;
}

std::vector<int> expert_of_slot(const PlacementContext& context) {
  const std::vector<double> loads = fitted_loads(context);
  if (num_hosts(context) == 1) return global_eplb(loads, context);
  const bool hosts_in_order = std::ranges::is_sorted(context.host_of_rank);
  if (hosts_in_order && needs_no_moves(loads, context)) return unmoved_experts(context.num_experts);
  const std::vector<int> slots = eplb_hierarchical_slots(
      loads, context.num_slots(), context.ep_size,
      {.num_groups = context.num_expert_groups, .num_hosts = num_hosts(context)},
      Colocation::avoided);
  return to_ranks_of_hosts(slots, context);
}

std::optional<std::string> refuses(const SweepPoint& point) {
  const std::optional<GroupPlaces> places = declared_places(point);
  if (!places.has_value()) {
    return "placement eplb_hierarchical needs to know the hosts: declare a topology, such as "
           "topology: {ranks_per_host: 8}";
  }
  const std::vector<int> ranks = places->ranks_per_host();
  const int groups = point.model.router.num_groups, hosts = places->num_hosts;
  if (std::ranges::min(ranks) != std::ranges::max(ranks)) {
    return fmt::format(
        "placement eplb_hierarchical wants as many ranks of a group on every host, found {} ranks "
        "over {} hosts: ranks per host {}; {} ranks fit on {} hosts",
        point.ep_size, hosts, join(ranks), point.ep_size, join(divisors(point.ep_size)));
  }
  if (groups % hosts != 0) {
    return fmt::format(
        "placement eplb_hierarchical deals whole expert groups to hosts: {} group{} of {} over {} "
        "hosts; these numbers of hosts would do: {}",
        groups, groups == 1 ? "" : "s", point.model.name, hosts, join(divisors(groups)));
  }
  const std::int64_t most = std::int64_t{point.model.num_experts} * (ranks.front() - 1);
  if (point.redundant_slots > most &&
      (point.model.num_experts + point.redundant_slots) % hosts == 0) {
    return fmt::format(
        "redundant_slots {} would put an expert twice on one rank: replicas stay on the expert's "
        "host, which has {} ranks, so at most {}",
        point.redundant_slots, ranks.front(), most);
  }
  return std::nullopt;
}

const bool registered = PlacementCatalog::instance().add(
    {"eplb_hierarchical",
     "eplb within every host, expert groups dealt to hosts first; takes redundant_slots, needs a "
     "topology",
     SlotRule::equal_per_rank, FittedTo::rows, expert_of_slot, refuses});

}  // namespace
}  // namespace epsweep
