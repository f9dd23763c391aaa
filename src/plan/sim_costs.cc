#include "plan/sim_costs.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "plan/yaml_reader.h"

namespace epsweep {
namespace {

constexpr double kMaxUs = 1e9;
constexpr double kMaxRate = 1e18;
constexpr double kMaxNoise = 1;
constexpr double kMinSlowdown = 1e-3, kMaxSlowdown = 1e3;
constexpr int kMaxRank = 1'000'000;

void read_into(const MapReader& map, const char* key, double min, double max, double& value) {
  if (const YamlNode* node = map.find(key)) value = read_number(*node, min, max);
}

void read_stages(const YamlNode& node, SimCosts& costs) {
  const MapReader map(node, {kStageNames.begin(), kStageNames.end()});
  for (std::size_t s = 0; s < kStageNames.size(); ++s) {
    const YamlNode* stage = map.find(std::string(kStageNames[s]));
    if (stage != nullptr) costs.stage_us[s] = read_number(*stage, 0, kMaxUs);
  }
}

void read_ffn(const YamlNode& node, SimCosts& costs) {
  const MapReader map(node, {"flop_per_s", "weight_bytes_per_s", "launch_us"});
  if (const YamlNode* rate = map.find("flop_per_s")) {
    costs.flop_per_s = read_number(*rate, 1, kMaxRate);
  }
  if (const YamlNode* rate = map.find("weight_bytes_per_s")) {
    costs.weight_bytes_per_s = read_number(*rate, 1, kMaxRate);
  }
  read_into(map, "launch_us", 0, kMaxUs, costs.launch_us);
}

void read_exchange(const YamlNode& node, SimCosts& costs) {
  const MapReader map(node, {"intra_alpha_us", "intra_bytes_per_s", "inter_alpha_us",
                             "inter_bytes_per_s", "self_bytes_per_s"});
  read_into(map, "intra_alpha_us", 0, kMaxUs, costs.intra.alpha_us);
  read_into(map, "intra_bytes_per_s", 1, kMaxRate, costs.intra.bytes_per_s);
  read_into(map, "inter_alpha_us", 0, kMaxUs, costs.inter.alpha_us);
  read_into(map, "inter_bytes_per_s", 1, kMaxRate, costs.inter.bytes_per_s);
  read_into(map, "self_bytes_per_s", 1, kMaxRate, costs.self.bytes_per_s);
}

const YamlNode& expect_map(const YamlNode& node, const char* example) {
  if (node.kind != YamlNode::Kind::map) {
    fail_at(node, fmt::format("expected a map such as {}", example));
  }
  return node;
}

int parse_rank(const YamlNode& node, std::string_view text) {
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size() || rank < 0 || rank > kMaxRank) {
    fail_at(node, fmt::format("'{}' is not the number of a world rank", text));
  }
  return rank;
}

void read_ranks(const YamlNode& node, SimCosts& costs) {
  for (const YamlEntry& entry : expect_map(node, "{5: {slowdown: 1.2}}").entries) {
    const MapReader map(entry.value, {"slowdown"});
    costs.ranks.push_back(
        {.rank = parse_rank(entry.value, entry.key),
         .slowdown = read_number(map.require("slowdown"), kMinSlowdown, kMaxSlowdown)});
  }
}

void read_links(const YamlNode& node, SimCosts& costs) {
  for (const YamlEntry& entry : expect_map(node, "{2-5: {extra_us: 300}}").entries) {
    const std::string_view key = entry.key;
    const std::size_t dash = key.find('-');
    if (dash == std::string_view::npos) {
      fail_at(entry.value, fmt::format("'{}' does not name a link, as 2-5 does", key));
    }
    const int a = parse_rank(entry.value, key.substr(0, dash));
    const int b = parse_rank(entry.value, key.substr(dash + 1));
    if (a == b) fail_at(entry.value, "a link has two ends");
    const MapReader map(entry.value, {"extra_us"});
    const SimCosts::SlowLink link{.a = std::min(a, b),
                                  .b = std::max(a, b),
                                  .extra_us = read_number(map.require("extra_us"), 0, kMaxUs)};
    const auto same = [&link](const auto& other) { return other.a == link.a && other.b == link.b; };
    if (std::ranges::any_of(costs.links, same)) {
      fail_at(entry.value, "this link is given twice, from both ends");
    }
    costs.links.push_back(link);
  }
}

void read_noise(const YamlNode& node, SimCosts& costs) {
  const MapReader map(node, {"relative", "run", "seed"});
  read_into(map, "relative", 0, kMaxNoise, costs.noise.relative);
  read_into(map, "run", 0, kMaxNoise, costs.noise.run);
  if (const YamlNode* seed = map.find("seed")) costs.noise.seed = read_seed(*seed);
}

Json link_json(const LinkCosts& link) {
  return {{"alpha_us", link.alpha_us}, {"bytes_per_s", link.bytes_per_s}};
}

}  // namespace

const std::vector<std::string>& sim_keys() {
  static const std::vector<std::string> keys = {"stages_us", "ffn",   "exchange",
                                                "ranks",     "links", "noise"};
  return keys;
}

SimCosts read_sim_costs(const YamlNode& node) {
  const MapReader map(node, sim_keys());
  SimCosts costs;
  if (const YamlNode* stages = map.find("stages_us")) read_stages(*stages, costs);
  if (const YamlNode* ffn = map.find("ffn")) read_ffn(*ffn, costs);
  if (const YamlNode* exchange = map.find("exchange")) read_exchange(*exchange, costs);
  if (const YamlNode* ranks = map.find("ranks")) read_ranks(*ranks, costs);
  if (const YamlNode* links = map.find("links")) read_links(*links, costs);
  if (const YamlNode* noise = map.find("noise")) read_noise(*noise, costs);
  return costs;
}

Json sim_costs_json(const SimCosts& costs) {
  Json stages = Json::object(), ranks = Json::object(), links = Json::object();
  for (std::size_t s = 0; s < kStageNames.size(); ++s) {
    stages[std::string(kStageNames[s])] = json_or_null(costs.stage_us[s]);
  }
  for (const SimCosts::RankCosts& one : costs.ranks) {
    ranks[std::to_string(one.rank)] = {{"slowdown", one.slowdown}};
  }
  for (const SimCosts::SlowLink& link : costs.links) {
    links[fmt::format("{}-{}", link.a, link.b)] = {{"extra_us", link.extra_us}};
  }
  return {
      {"stages_us", std::move(stages)},
      {"ffn",
       {{"flop_per_s", json_or_null(costs.flop_per_s)},
        {"weight_bytes_per_s", json_or_null(costs.weight_bytes_per_s)},
        {"launch_us", costs.launch_us}}},
      {"exchange",
       {{"self", link_json(costs.self)},
        {"intra", link_json(costs.intra)},
        {"inter", link_json(costs.inter)}}},
      {"ranks", std::move(ranks)},
      {"links", std::move(links)},
      {"noise",
       {{"relative", costs.noise.relative}, {"run", costs.noise.run}, {"seed", costs.noise.seed}}}};
}

}  // namespace epsweep
