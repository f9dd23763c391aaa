#include "report/ceiling_lines.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "report/record_access.h"
#include "report/text_table.h"

namespace epsweep {
namespace {

std::string scaled(const Json& json, const std::string& path, double unit) {
  std::optional<double> value = find_number(json, path);
  if (value) *value /= unit;
  return short_number(value);
}

// "12.3-12.5": of the slowest and the fastest rank; one number where they are equal.
std::string range_text(const Json& json, const std::string& name) {
  const std::string slowest = scaled(json, "slowest_" + name, 1e9);
  const std::string fastest = scaled(json, "fastest_" + name, 1e9);
  return slowest == fastest ? slowest : slowest + "-" + fastest;
}

// The distinct texts of a list, in alphabetical order.
std::string distinct(const Json& json, const std::string& key) {
  std::set<std::string> texts;
  const Json* list = find_value(json, key);
  if (list == nullptr || !list->is_array()) return "-";
  for (const Json& item : *list) texts.insert(plain_text(&item));
  return join(std::vector<std::string>(texts.begin(), texts.end()));
}

std::optional<double> least(const Json& json, const std::string& key) {
  const Json* list = find_value(json, key);
  if (list == nullptr || !list->is_array()) return std::nullopt;
  std::optional<double> least;
  for (const Json& item : *list) {
    if (item.is_number()) least = std::min(least.value_or(item.get<double>()), item.get<double>());
  }
  return least;
}

bool any_true(const Json& json, const std::string& key) {
  const Json* list = find_value(json, key);
  if (list == nullptr || !list->is_array()) return false;
  return std::any_of(list->begin(), list->end(), [](const Json& item) { return item == true; });
}

std::string rates_lines(const Json& rates) {
  const Json* ranks = find_value(rates, "working_ranks");
  std::string text =
      fmt::format("  {} ranks\n", ranks != nullptr && ranks->is_array() ? ranks->size() : 0);
  if (const Json* gemms = find_value(rates, "gemm"); gemms != nullptr && gemms->is_object()) {
    for (const auto& [dtype, gemm] : gemms->items()) {
      text += fmt::format("    GEMM {}: {} GFLOP/s ({}, {} rows)\n", dtype,
                          range_text(gemm, "flop_per_s"), distinct(gemm, "kernel_of_rank"),
                          distinct(gemm, "size_of_rank"));
    }
  }
  std::optional<double> streamed_mb = least(rates, "streamed_bytes_of_rank");
  if (streamed_mb) *streamed_mb /= 1e6;
  const char* cached = any_true(rates, "cached_of_rank")
                           ? ", less than twice the last cache: may be the cache's"
                           : "";
  text += fmt::format("    memory: read {} GB/s, copy {} GB/s both ways ({} MB{})\n",
                      range_text(rates, "read_bytes_per_s"), range_text(rates, "copy_bytes_per_s"),
                      short_number(streamed_mb), cached);
  std::optional<double> launch_us = least(rates, "launch_latency_s_of_rank");
  if (launch_us) *launch_us *= 1e6;
  return text + fmt::format("    start of work: {} us\n", short_number(launch_us));
}

std::string exchange_line(const Json& exchange) {
  const auto text = [&exchange](const char* key) { return plain_text(find_value(exchange, key)); };
  return fmt::format("  EP{} {} {} {}: alpha {} us, beta {} GB/s of a rank, counts {} us\n",
                     text("ep_size"), text("mapping"), text("groups"), text("transport"),
                     scaled(exchange, "alpha_s", 1e-6), scaled(exchange, "beta_bytes_per_s", 1e9),
                     scaled(exchange, "count_exchange_s", 1e-6));
}

}  // namespace

std::string ceiling_text(const Json& run) {
  const Json* ceilings = find_value(run, "ceilings");
  if (ceilings == nullptr || !ceilings->is_object()) return "";
  std::string text = fmt::format(
      "\nCeilings, measured in this run by all ranks at once (slowest-fastest rank), in {} s\n",
      short_number(find_number(*ceilings, "took_s.streams").value_or(0) +
                   find_number(*ceilings, "took_s.gemm").value_or(0) +
                   find_number(*ceilings, "took_s.exchange").value_or(0)));
  for (const char* key : {"rates", "exchange"}) {
    const Json* list = find_value(*ceilings, key);
    if (list == nullptr || !list->is_array()) continue;
    for (const Json& item : *list) {
      text += std::string_view(key) == "rates" ? rates_lines(item) : exchange_line(item);
    }
  }
  return text;
}

}  // namespace epsweep
