// Ceilings as run.json has them.
#include <algorithm>

#include "app/run_ceilings.h"

namespace epsweep {
namespace {

// "x_of_rank" with its extremes; nulls where a rank has none.
void put_rates(const std::string& name, const std::vector<std::optional<double>>& of_rank,
               Json& json) {
  Json list = Json::array();
  std::optional<double> slowest, fastest;
  for (const std::optional<double>& rate : of_rank) {
    list.push_back(json_or_null(rate));
    if (!rate) continue;
    slowest = std::min(slowest.value_or(*rate), *rate);
    fastest = std::max(fastest.value_or(*rate), *rate);
  }
  json[name + "_of_rank"] = std::move(list);
  json["slowest_" + name] = json_or_null(slowest);
  json["fastest_" + name] = json_or_null(fastest);
}

}  // namespace

Json RunCeilings::rates_json(const std::vector<int>& world_ranks, const Together& together) const {
  std::vector<std::optional<double>> read, copy;
  Json launch = Json::array(), streamed = Json::array(), caches = Json::array(),
       cached = Json::array();
  for (const RankRates& rank : together.of_rank) {
    read.push_back(rank.streams.read_bytes_per_s);
    copy.push_back(rank.streams.copy_bytes_per_s);
    launch.push_back(json_or_null(rank.streams.launch_latency_s));
    streamed.push_back(rank.streams.streamed_bytes);
    caches.push_back(rank.streams.last_level_cache_bytes);
    cached.push_back(rank.streams.cached());
  }
  Json json = {{"working_ranks", world_ranks}, {"gemm", Json::object()}};
  for (const DType dtype : together.dtypes) {
    std::vector<std::optional<double>> rates;
    Json kernels = Json::array(), sizes = Json::array();
    for (const RankRates& rank : together.of_rank) {
      const auto found = rank.gemm.find(dtype);
      const bool has = found != rank.gemm.end();
      rates.push_back(has ? std::optional(found->second.flop_per_s) : std::nullopt);
      kernels.push_back(has ? Json(found->second.kernel) : Json(nullptr));
      sizes.push_back(has ? Json(found->second.size) : Json(nullptr));
    }
    Json& gemm = json["gemm"][std::string(to_string(dtype))] = Json::object();
    put_rates("flop_per_s", rates, gemm);
    gemm["kernel_of_rank"] = std::move(kernels);
    gemm["size_of_rank"] = std::move(sizes);
  }
  put_rates("read_bytes_per_s", read, json);
  put_rates("copy_bytes_per_s", copy, json);
  json["streamed_bytes_of_rank"] = std::move(streamed);
  json["last_level_cache_bytes_of_rank"] = std::move(caches);
  json["cached_of_rank"] = std::move(cached);
  json["launch_latency_s_of_rank"] = std::move(launch);
  return json;
}

Json RunCeilings::json() const {
  if (rates_.empty() && exchanges_.empty()) return nullptr;
  Json rates = Json::array(), exchanges = Json::array();
  for (const auto& [ranks, together] : rates_) rates.push_back(rates_json(ranks, together));
  for (const auto& [key, exchange] : exchanges_) {
    if (exchange.best_s.empty()) continue;  // a group of one exchanges nothing
    const auto& [ep_size, mapping, groups, transport] = key;
    Json ladder = Json::array();
    for (std::size_t rung = 0; rung < exchange.best_s.size(); ++rung) {
      ladder.push_back({{"bytes_per_peer", exchange.bytes_per_peer[rung]},
                        {"remote_bytes_per_rank", exchange.bytes_per_peer[rung] * (ep_size - 1)},
                        {"best_s", exchange.best_s[rung]},
                        {"median_s", exchange.median_s[rung]}});
    }
    const bool fitted = exchange.line.has_value();
    exchanges.push_back(
        {{"ep_size", ep_size},
         {"mapping", to_string(mapping)},
         {"groups", to_string(groups)},
         {"transport", transport},
         {"alpha_s", fitted ? Json(exchange.line->alpha_s) : Json(nullptr)},
         {"beta_bytes_per_s", fitted ? Json(exchange.line->beta_bytes_per_s) : Json(nullptr)},
         {"count_exchange_s", json_or_null(exchange.count_exchange_s)},
         {"ladder", std::move(ladder)}});
  }
  return {{"took_s",
           {{"streams", took_.streams_s}, {"gemm", took_.gemm_s}, {"exchange", took_.exchange_s}}},
          {"rates", std::move(rates)},
          {"exchange", std::move(exchanges)}};
}

}  // namespace epsweep
