#include <algorithm>
#include <utility>

#include "base/text.h"
#include "plan/sweep_spec_parts.h"

namespace epsweep {
namespace {

// Placing so many takes seconds.
constexpr std::int64_t kMaxRedundantSlots = 100'000;

// The parts of `placement`, wherever they stand; null where they are not there.
struct PlacementNodes {
  const YamlNode* policies = nullptr;
  const YamlNode* redundant_slots = nullptr;
  const YamlNode* fit_on = nullptr;
  const YamlNode* judge_on = nullptr;
};

bool has_key(const YamlNode& node, const std::string& key) {
  return std::ranges::find(node.entries, key, &YamlEntry::key) != node.entries.end();
}

PlacementNodes find_nodes(const MapReader& top) {
  PlacementNodes nodes{.policies = top.find("placement"),
                       .redundant_slots = top.find("redundant_slots")};
  if (nodes.policies == nullptr || nodes.policies->kind != YamlNode::Kind::map ||
      has_key(*nodes.policies, "policy")) {
    return nodes;
  }
  const MapReader inner(*nodes.policies, {"policies", "redundant_slots", "fit_on", "judge_on"});
  if (const YamlNode* slots = inner.find("redundant_slots")) {
    if (nodes.redundant_slots != nullptr) {
      fail_at(*nodes.redundant_slots,
              fmt::format("placement.redundant_slots is given too, on line {}; one of both",
                          slots->line));
    }
    nodes.redundant_slots = slots;
  }
  nodes.fit_on = inner.find("fit_on");
  nodes.judge_on = inner.find("judge_on");
  nodes.policies = &inner.require("policies");
  return nodes;
}

template <typename Wanted>
std::vector<std::string> names_where(const std::vector<PlacementInfo>& known, Wanted wanted) {
  std::vector<std::string> names;
  for (const PlacementInfo& info : known) {
    if (wanted(info)) names.push_back(info.name);
  }
  return names;
}

// What is chosen, before redundant slots.
struct Policy {
  const PlacementInfo* info = nullptr;
  std::shared_ptr<const PlacementMap> map;
};

// A name, or a map of `policy` and `file`.
Policy read_policy(const YamlNode& node, const std::string& experiment_file,
                   const std::vector<PlacementInfo>& known, int num_experts) {
  const auto names = names_where(known, [](const PlacementInfo&) { return true; });
  const bool word_only = node.kind != YamlNode::Kind::map;
  for (const YamlEntry& entry : node.entries) {
    if (entry.key != "fit_on" && entry.key != "judge_on" && entry.key != "redundant_slots")
      continue;
    fail_at(entry.value,
            fmt::format("it goes beside 'policies': {{policies: [...], {}: ...}}", entry.key));
  }
  const std::vector<std::string> keys = {"policy", "file"};
  const std::string name =
      read_choice(word_only ? node : MapReader(node, keys).require("policy"), names);
  const YamlNode* file = word_only ? nullptr : MapReader(node, keys).find("file");
  Policy policy{.info = &*std::ranges::find(known, name, &PlacementInfo::name), .map = nullptr};
  if (policy.info->slot_rule != SlotRule::listed) {
    if (file == nullptr) return policy;
    fail_at(*file, fmt::format("placement {} reads no file; map does", name));
  }
  if (file == nullptr) {
    fail_at(node,
            fmt::format("placement {0} needs a file: {{policy: {0}, file: PLACEMENT.yaml}}", name));
  }
  const std::string path = path_beside(experiment_file, read_word(*file));
  policy.map = std::make_shared<const PlacementMap>(
      parse_placement_map(read_text_file(path), path, num_experts));
  return policy;
}

std::vector<Policy> read_policies(const YamlNode& node, const std::string& experiment_file,
                                  const std::vector<PlacementInfo>& known, int num_experts) {
  std::vector<Policy> policies;
  for (const YamlNode* item : read_items(node)) {
    policies.push_back(read_policy(*item, experiment_file, known, num_experts));
  }
  refuse_repeats(node, policies, [](const Policy& policy) {
    return policy.map == nullptr
               ? policy.info->name
               : fmt::format("{} {}", policy.info->name, policy.map->file_checksum);
  });
  return policies;
}

bool takes_replicas(const Policy& policy) {
  return policy.info->slot_rule == SlotRule::equal_per_rank;
}

bool is_fitted(const Policy& policy) {
  return policy.info->fitted_to != FittedTo::nothing;
}

std::string names_of(const std::vector<Policy>& policies) {
  std::vector<std::string> names;
  for (const Policy& policy : policies) names.push_back(policy.info->name);
  return join(names);
}

std::vector<int> read_redundant_slots(const YamlNode& node, const std::vector<Policy>& policies,
                                      const std::vector<PlacementInfo>& known) {
  std::vector<int> counts;
  for (const YamlNode* item : read_items(node)) {
    counts.push_back(static_cast<int>(read_count(*item, 0, kMaxRedundantSlots)));
    if (counts.back() == 0 || std::ranges::any_of(policies, takes_replicas)) continue;
    const auto replicating = names_where(known, [](const PlacementInfo& info) {
      return info.slot_rule == SlotRule::equal_per_rank;
    });
    fail_at(*item, fmt::format("placement {} has no replicas; those that have: {}",
                               names_of(policies), join(replicating)));
  }
  refuse_repeats(node, counts, [](int count) { return std::to_string(count); });
  return counts;
}

void refuse_fit_of_nothing(const YamlNode& node, const std::vector<Policy>& policies,
                           const std::vector<PlacementInfo>& known) {
  if (std::ranges::any_of(policies, is_fitted)) return;
  const auto fitted = names_where(
      known, [](const PlacementInfo& info) { return info.fitted_to != FittedTo::nothing; });
  fail_at(node, fmt::format("placement {} is not fitted to any trace; those that are: {}",
                            names_of(policies), join(fitted)));
}

}  // namespace

PlacementAxis read_placements(const MapReader& top, const std::string& file,
                              const Catalogs& catalogs, int num_experts) {
  const std::vector<PlacementInfo>& known = catalogs.placements;
  const PlacementNodes nodes = find_nodes(top);
  YamlNode default_policy;
  default_policy.kind = YamlNode::Kind::scalar;
  default_policy.scalar = "contiguous";
  const std::vector<Policy> policies = read_policies(
      nodes.policies == nullptr ? default_policy : *nodes.policies, file, known, num_experts);
  std::vector<int> counts = {0};
  if (nodes.redundant_slots != nullptr) {
    counts = read_redundant_slots(*nodes.redundant_slots, policies, known);
  }
  std::optional<TraceChoice> fit_on;
  if (nodes.fit_on != nullptr) {
    refuse_fit_of_nothing(*nodes.fit_on, policies, known);
    fit_on = read_trace_choice(*nodes.fit_on, file, catalogs);
  }
  PlacementAxis axis;
  if (nodes.judge_on != nullptr) axis.judge_on = read_trace_choice(*nodes.judge_on, file, catalogs);
  for (const Policy& policy : policies) {
    const int of_map = policy.map == nullptr ? 0 : policy.map->num_slots - num_experts;
    for (const int count : takes_replicas(policy) ? counts : std::vector{of_map}) {
      axis.choices.push_back({.name = policy.info->name,
                              .redundant_slots = count,
                              .map = policy.map,
                              .fit_on = is_fitted(policy) ? fit_on : std::nullopt});
    }
  }
  return axis;
}

}  // namespace epsweep
