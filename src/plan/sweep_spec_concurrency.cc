#include <algorithm>

#include "base/text.h"
#include "plan/sweep_spec_parts.h"

namespace epsweep {
namespace {

// A list of counts, or {from, to, factor}: from, from*factor, ... up to and including to.
std::vector<std::int64_t> read_ladder(const YamlNode& node) {
  std::vector<std::int64_t> tokens;
  if (node.kind != YamlNode::Kind::map) {
    for (const YamlNode* item : read_items(node))
      tokens.push_back(read_count(*item, 0, kMaxTokens));
  } else {
    const MapReader ladder(node, {"from", "to", "factor"});
    const std::int64_t from = read_count(ladder.require("from"), 1, kMaxTokens);
    const std::int64_t to = read_count(ladder.require("to"), from, kMaxTokens);
    const std::int64_t factor = read_count(ladder.require("factor"), 2, kMaxTokens);
    for (std::int64_t count = from; count <= to; count *= factor) tokens.push_back(count);
  }
  refuse_repeats(node, tokens, [](std::int64_t count) { return std::to_string(count); });
  std::ranges::sort(tokens);  // climbed whatever the order they were written in
  return tokens;
}

std::vector<Concurrency> read_listed(const YamlNode& node) {
  std::vector<Concurrency> loads;
  const bool one_list = node.kind == YamlNode::Kind::list && !node.items.empty() &&
                        node.items.front().kind != YamlNode::Kind::list;
  const auto lists = one_list ? std::vector<const YamlNode*>{&node} : read_items(node);
  for (const YamlNode* list : lists) {
    Concurrency load{.mode = ConcurrencyMode::listed, .tokens = 0, .tokens_per_rank = {}};
    if (list->kind != YamlNode::Kind::list) fail_at(*list, "expected a list of tokens by rank");
    for (const YamlNode* item : read_items(*list)) {
      load.tokens_per_rank.push_back(read_count(*item, 0, kMaxTokens));
    }
    loads.push_back(std::move(load));
  }
  return loads;
}

}  // namespace

const std::vector<std::string>& concurrency_keys() {
  static const std::vector<std::string> keys = {"fixed_global", "fixed_per_rank",
                                                "tokens_per_rank"};
  return keys;
}

std::vector<Concurrency> read_concurrency(const YamlNode& node) {
  const MapReader map(node, concurrency_keys());
  if (node.entries.empty()) fail_at(node, "names no load: " + join(concurrency_keys()));
  std::vector<Concurrency> loads;
  for (const ConcurrencyMode mode :
       {ConcurrencyMode::fixed_global, ConcurrencyMode::fixed_per_rank}) {
    const YamlNode* ladder = map.find(to_string(mode));
    if (ladder == nullptr) continue;
    for (const std::int64_t tokens : read_ladder(*ladder)) {
      loads.push_back({.mode = mode, .tokens = tokens, .tokens_per_rank = {}});
    }
  }
  if (const YamlNode* lists = map.find("tokens_per_rank")) {
    for (Concurrency& load : read_listed(*lists)) loads.push_back(std::move(load));
  }
  return loads;
}

}  // namespace epsweep
