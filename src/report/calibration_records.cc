#include "report/calibration_records.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/record_access.h"

namespace epsweep {
namespace {

constexpr double kSPerUs = 1e-6;

// What is no number in a damaged record counts as none.
double as_number(const Json& value) {
  return value.is_number() ? value.get<double>() : 0;
}

double number(const Json& record, const std::string& path) {
  return find_number(record, path).value_or(0);
}

bool is_contiguous(const Json& record) {
  return find_text(record, "point.placement") == "contiguous" &&
         number(record, "point.redundant_slots") == 0 &&
         find_text(record, "point.mapping") == "packed";
}

}  // namespace

int ep_size_of(const Json& record) {
  constexpr double kMost = 1e6;
  const double ep_size = number(record, "point.ep_size");
  return ep_size >= 1 && ep_size <= kMost ? static_cast<int>(ep_size) : 0;
}

std::optional<FfnSample> ffn_sample(const Json& record) {
  const Json* layers = find_value(record, "rows_per_expert.per_layer");
  const Json* times = find_value(record, "ffn_p50_us_of_rank");
  if (!is_contiguous(record) || layers == nullptr || times == nullptr || times->empty()) {
    return std::nullopt;
  }
  double active = 0, rows = 0, us = 0;
  for (const Json& layer : *layers) {
    for (const Json& of_expert : layer) {
      const auto count = as_number(of_expert);
      active += count > 0 ? 1 : 0;
      rows += count;
    }
  }
  for (const Json& of_rank : *times) us += as_number(of_rank);
  const double ranks = number(record, "point.ep_size") * static_cast<double>(layers->size());
  if (!(active > 0)) return std::nullopt;
  return FfnSample{.slots = std::max<std::int64_t>(1, std::llround(active / ranks)),
                   .rows_per_slot = rows / active,
                   .seconds = us * kSPerUs / static_cast<double>(times->size())};
}

ExchangeDemand demand_of(const Json& record, const std::string& stage) {
  const bool by_rank = find_text(record, "point.exchange_unit") == "rank";
  const std::string bytes = "bytes." + stage + ".", letter = by_rank ? "b" : "a";
  const std::string what = by_rank ? "max_d_copies" : "max_remote_rows";
  const double ranks = number(record, "point.ep_size");
  const double copies =
      std::max(number(record, bytes + what + "_sent"), number(record, bytes + what + "_received"));
  const double metadata = number(record, bytes + "metadata_bytes") /
                          (std::max(1.0, number(record, "point.layers")) *
                           std::max(1.0, number(record, "point.vary_routing"))) *
                          (ranks - 1) / (ranks * ranks);
  const double busiest = copies * number(record, bytes + "row_bytes") + metadata;
  const double remote = number(record, bytes + letter + "_remote_copies");
  const double leaving = number(record, bytes + letter + "_inter_copies");
  const double share = remote > 0 ? leaving / remote : 0;
  const bool leaves = number(record, "bytes.num_domains") > 1;
  return {.ep_size = ep_size_of(record),
          .reach = leaves ? Reach::across_domains : Reach::within_domain,
          .bytes = {.intra = busiest * (1 - share), .inter = busiest * share}};
}

std::optional<double> transfer_s(const Json& record, const std::string& stage) {
  auto us = find_number(record, "stages." + stage + ".exchange.transfer_us.p50");
  if (us) *us *= kSPerUs;
  return us;
}

double most_tokens(const Json& record) {
  const Json* tokens = find_value(record, "tokens_per_rank");
  double most = 0;
  if (tokens == nullptr) return most;
  for (const Json& of_rank : *tokens) most = std::max(most, as_number(of_rank));
  return most;
}

}  // namespace epsweep
