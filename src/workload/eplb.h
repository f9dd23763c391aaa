// Expert-parallel load balancing: which experts get replicas and which rank holds which slot.
// The greedy policies of https://github.com/deepseek-ai/EPLB, made deterministic: equal loads go in
// index order, and loads are doubles (the original's float32 ties neighbouring counts above
// 2^24, so results can differ there).
#pragma once

#include <span>
#include <vector>

namespace epsweep {

// Whether one rank may hold two replicas of an expert, which costs memory and balances nothing.
// `allowed` is the published algorithm. `avoided` also gives no expert more replicas than ranks.
enum class Colocation { allowed, avoided };

// The expert in every slot, rank after rank: [num_slots]. loads[expert] >= 0 and finite; num_slots
// is at least the number of experts and divisible by ep_size.
std::vector<int> eplb_slots(std::span<const double> loads, int num_slots, int ep_size,
                            Colocation colocation);

// Experts in num_groups equal blocks of neighbours; ranks in num_hosts equal blocks.
struct HostSplit {
  int num_groups = 1;
  int num_hosts = 1;
};

// The hierarchical policy: whole groups to hosts by falling load, the same number each, then
// eplb_slots() of a host's experts on its own slots and ranks; hosts one after the other. Replicas
// stay on their expert's host, so `avoided` caps them by a host's ranks. num_groups, ep_size and
// num_slots are divisible by num_hosts. One host: eplb_slots() of all experts.
std::vector<int> eplb_hierarchical_slots(std::span<const double> loads, int num_slots, int ep_size,
                                         const HostSplit& split, Colocation colocation);

// Slots that hold an expert which their rank already has in an earlier slot.
int count_colocated(std::span<const int> expert_of_slot, int ep_size);

}  // namespace epsweep
