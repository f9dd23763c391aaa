#include "workload/eplb.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"

namespace epsweep {
namespace {

std::vector<std::size_t> in_order(std::size_t size) {
  std::vector<std::size_t> items(size);
  std::iota(items.begin(), items.end(), std::size_t{0});
  return items;
}

struct Replicas {
  std::vector<int> expert;   // [num_slots]: all experts in order, then the extra replicas
  std::vector<double> load;  // [num_slots], an expert's load over its number of replicas
};

// Every extra slot goes to the expert whose replicas carry most, the first of equals.
Replicas replicate(std::span<const double> loads, std::size_t num_slots, int max_replicas) {
  Replicas result;
  result.expert.resize(loads.size());
  std::iota(result.expert.begin(), result.expert.end(), 0);
  std::vector<int> count(loads.size(), 1);
  const auto share = [&](std::size_t expert) { return loads[expert] / count[expert]; };
  while (result.expert.size() < num_slots) {
    std::optional<std::size_t> most;
    for (std::size_t expert = 0; expert < loads.size(); ++expert) {
      if (count[expert] >= max_replicas) continue;
      if (!most || share(expert) > share(*most)) most = expert;
    }
    EPS_EXPECT(most.has_value(), "more slots than experts times replicas");
    ++count[*most];
    result.expert.push_back(static_cast<int>(*most));
  }
  for (const int expert : result.expert) {
    result.load.push_back(share(static_cast<std::size_t>(expert)));
  }
  return result;
}

struct Rank {
  std::vector<std::size_t> items;  // positions in Replicas, by arrival
  double load = 0;
};

// Slots of all ranks while they are being filled.
class Packing {
 public:
  Packing(const Replicas& replicas, std::size_t ep_size)
      : replicas_(replicas), room_(replicas.expert.size() / ep_size), ranks_(ep_size) {}

  // Items by falling load, each to the lightest rank with room, the first of equals.
  void fill(Colocation colocation) {
    std::vector<std::size_t> order = in_order(replicas_.expert.size());
    if (room_ == 1) {  // nothing to balance
      for (const std::size_t item : order) put(ranks_[item], item);
      return;
    }
    std::ranges::stable_sort(order, std::greater<>(),
                             [this](std::size_t item) { return replicas_.load[item]; });
    for (const std::size_t item : order) {
      Rank* rank = colocation == Colocation::avoided ? lightest_without(item) : nullptr;
      put(rank == nullptr ? *lightest([](const Rank&) { return true; }) : *rank, item);
    }
  }

  // Greedy filling can leave only ranks that hold the expert already: such a replica changes places
  // with a slot elsewhere, chosen so that the busier of the two ranks ends up lightest.
  void separate_replicas() {
    for (Rank& rank : ranks_) {
      for (std::size_t at = 0; at < rank.items.size(); ++at) {
        if (count(rank, expert_of(rank.items[at])) > 1) swap_away(rank, at);
      }
    }
  }

  std::vector<int> expert_of_slot() const {
    std::vector<int> experts;
    for (const Rank& rank : ranks_) {
      for (const std::size_t item : rank.items) experts.push_back(expert_of(item));
    }
    return experts;
  }

 private:
  int expert_of(std::size_t item) const { return replicas_.expert[item]; }

  std::ptrdiff_t count(const Rank& rank, int expert) const {
    return std::ranges::count(rank.items, expert,
                              [this](std::size_t item) { return expert_of(item); });
  }

  void put(Rank& rank, std::size_t item) {
    rank.items.push_back(item);
    rank.load += replicas_.load[item];
  }

  template <typename Accept>
  Rank* lightest(Accept accept) {
    Rank* best = nullptr;
    for (Rank& rank : ranks_) {
      if (rank.items.size() == room_ || (best != nullptr && rank.load >= best->load)) continue;
      if (accept(rank)) best = &rank;
    }
    return best;
  }

  Rank* lightest_without(std::size_t item) {
    return lightest([&](const Rank& rank) { return count(rank, expert_of(item)) == 0; });
  }

  void swap_away(Rank& rank, std::size_t at) {
    const std::size_t item = rank.items[at];
    Rank* best_rank = nullptr;
    std::size_t best_at = 0;
    double best_load = INFINITY;
    for (Rank& other : ranks_) {
      if (count(other, expert_of(item)) != 0) continue;
      for (std::size_t i = 0; i < other.items.size(); ++i) {
        if (count(rank, expert_of(other.items[i])) != 0) continue;
        const double moved = replicas_.load[item] - replicas_.load[other.items[i]];
        const double load = std::max(rank.load - moved, other.load + moved);
        if (load >= best_load) continue;
        best_load = load;
        best_rank = &other;
        best_at = i;
      }
    }
    if (best_rank == nullptr) return;
    const double moved = replicas_.load[item] - replicas_.load[best_rank->items[best_at]];
    std::swap(rank.items[at], best_rank->items[best_at]);
    rank.load -= moved;
    best_rank->load += moved;
  }

  const Replicas& replicas_;
  std::size_t room_;
  std::vector<Rank> ranks_;
};

// Groups to hosts, the same number each, by falling load: [num_hosts][groups of the host by
// arrival].
std::vector<std::vector<int>> groups_of_hosts(std::span<const double> loads,
                                              const HostSplit& split) {
  const std::size_t size = loads.size() / static_cast<std::size_t>(split.num_groups);
  Replicas groups;
  for (int group = 0; group < split.num_groups; ++group) {
    const auto own = loads.subspan(static_cast<std::size_t>(group) * size, size);
    groups.expert.push_back(group);
    groups.load.push_back(std::accumulate(own.begin(), own.end(), 0.0));
  }
  Packing packing(groups, static_cast<std::size_t>(split.num_hosts));
  packing.fill(Colocation::allowed);
  const std::vector<int> packed = packing.expert_of_slot();
  std::vector<std::vector<int>> hosts;
  const auto share = static_cast<std::ptrdiff_t>(packed.size()) / split.num_hosts;
  for (auto at = packed.begin(); at != packed.end(); at += share)
    hosts.emplace_back(at, at + share);
  return hosts;
}

}  // namespace

std::vector<int> eplb_slots(std::span<const double> loads, int num_slots, int ep_size,
                            Colocation colocation) {
  EPS_EXPECT(ep_size >= 1 && num_slots % ep_size == 0, "slots are not divisible by ranks");
  EPS_EXPECT(!loads.empty() && static_cast<std::size_t>(num_slots) >= loads.size(),
             "fewer slots than experts");
  EPS_EXPECT(std::ranges::all_of(loads, [](double x) { return std::isfinite(x) && x >= 0; }),
             "a load that is negative or not finite");
  const int max_replicas = colocation == Colocation::avoided ? ep_size : num_slots;
  const Replicas replicas = replicate(loads, static_cast<std::size_t>(num_slots), max_replicas);
  Packing packing(replicas, static_cast<std::size_t>(ep_size));
  packing.fill(colocation);
  if (colocation == Colocation::avoided) packing.separate_replicas();
  return packing.expert_of_slot();
}

std::vector<int> eplb_hierarchical_slots(std::span<const double> loads, int num_slots, int ep_size,
                                         const HostSplit& split, Colocation colocation) {
  const auto [num_groups, num_hosts] = split;
  EPS_EXPECT(num_groups >= 1 && num_hosts >= 1 && num_groups % num_hosts == 0 &&
                 loads.size() % static_cast<std::size_t>(num_groups) == 0,
             "expert groups do not divide");
  EPS_EXPECT(ep_size % num_hosts == 0 && num_slots % num_hosts == 0, "hosts are not alike");
  if (num_hosts == 1) return eplb_slots(loads, num_slots, ep_size, colocation);
  const int group_size = static_cast<int>(loads.size()) / num_groups;
  std::vector<int> slots;
  for (const std::vector<int>& groups : groups_of_hosts(loads, split)) {
    std::vector<int> experts;
    std::vector<double> own_loads;
    for (const int group : groups) {
      for (int expert = group * group_size; expert < (group + 1) * group_size; ++expert) {
        experts.push_back(expert);
        own_loads.push_back(loads[static_cast<std::size_t>(expert)]);
      }
    }
    for (const int local :
         eplb_slots(own_loads, num_slots / num_hosts, ep_size / num_hosts, colocation)) {
      slots.push_back(experts[static_cast<std::size_t>(local)]);
    }
  }
  return slots;
}

int count_colocated(std::span<const int> expert_of_slot, int ep_size) {
  EPS_EXPECT(ep_size >= 1 && expert_of_slot.size() % static_cast<std::size_t>(ep_size) == 0,
             "slots are not divisible by ranks");
  const std::size_t room = expert_of_slot.size() / static_cast<std::size_t>(ep_size);
  int colocated = 0;
  for (std::size_t slot = 0; slot < expert_of_slot.size(); ++slot) {
    const auto earlier = expert_of_slot.subspan(slot - slot % room, slot % room);
    if (std::ranges::find(earlier, expert_of_slot[slot]) != earlier.end()) ++colocated;
  }
  return colocated;
}

}  // namespace epsweep
