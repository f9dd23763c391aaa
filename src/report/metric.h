// The catalog of derived numbers: one file of metrics/ each, with its unit in the name and its
// formula beside it.
#pragma once

#include <optional>
#include <string>

#include "base/local_copy.h"
#include "base/registry.h"
#include "costs/exchange_fit.h"
#include "costs/ffn_work.h"
#include "costs/roofline.h"
#include "costs/traffic.h"
#include "plan/sweep_point.h"
#include "report/summary.h"

namespace epsweep {

// What a metric may be computed from. Traffic and FFN work are of one EP group, summed over the
// point's layers; times are per layer.
struct PointFacts {
  const SweepPoint& point;
  const PointSummary& summary;
  int num_groups = 0;
  int num_active_ranks = 0;  // ranks of the groups that run
  const Traffic& traffic;
  const FfnWork& ffn;
  std::optional<FfnWork> slowest_rank_ffn;         // of the rank that is slowest in expert_ffn
  std::optional<FfnRoofline> ffn_roofline = {};    // of the same rank
  std::optional<ExchangeLine> exchange_line = {};  // of bare exchanges

  const TimeSummary& slowest_s(Stage stage) const {
    return summary.stages[static_cast<std::size_t>(stage)].slowest_s;
  }
  // Of an exchange: last arrival to last departure, p50.
  std::optional<double> transfer_s(Stage stage) const {
    const auto& exchange = summary.exchange[static_cast<std::size_t>(stage)];
    return exchange.has_value() ? exchange->transfer_s.p50 : std::nullopt;
  }
  // Of the whole model; absent where nothing says what that is.
  std::optional<double> tpot_s() const {
    if (!point.limits.has_value()) return std::nullopt;
    const std::optional<double> layer_s = summary.period_s(point.limits->percentile);
    if (!layer_s.has_value()) return std::nullopt;
    return epsweep::tpot_s(*point.limits, *layer_s);
  }
  // Copies of the letter without self, one group, one layer; 0 where the point's exchange unit does
  // not send copies of that letter, and where nothing is sent while it is timed.
  double a_remote_bytes_per_layer() const {
    if (point.exchange_unit != ExchangeUnit::assignment || copies_locally()) return 0;
    return bytes_per_layer(traffic.a_copies - traffic.a_self_copies);
  }
  double b_remote_bytes_per_layer() const {
    if (point.exchange_unit != ExchangeUnit::rank || copies_locally()) return 0;
    return bytes_per_layer(traffic.b_copies - traffic.b_self_copies);
  }

 private:
  bool copies_locally() const { return point.transport == kLocalCopy; }
  double bytes_per_layer(std::int64_t copies) const {
    return static_cast<double>(copies) * static_cast<double>(traffic.row_bytes) /
           point.num_routings();
  }
};

enum class Better { higher, lower, neither };
constexpr const char* to_string(Better better) {
  return better == Better::higher ? "higher" : better == Better::lower ? "lower" : "neither";
}

// numerator / denominator; absent where either is missing, or where it would be 0 of something or
// something by 0: an undefined rate is null in the record, never 0 or infinite.
inline std::optional<double> rate(double numerator, std::optional<double> denominator) {
  if (!(numerator > 0) || !denominator.has_value() || !(*denominator > 0)) return std::nullopt;
  return numerator / *denominator;
}

struct MetricEntry {
  std::string name;  // unit included
  std::string unit;
  Better better = Better::neither;
  std::string formula;
  std::optional<double> (*compute)(const PointFacts& facts) = nullptr;
};

using MetricCatalog = Registry<MetricEntry>;

}  // namespace epsweep
