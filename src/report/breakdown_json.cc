#include "report/breakdown_json.h"

#include <numeric>

#include "base/statistics.h"
#include "report/record_access.h"

namespace epsweep {
namespace {

std::optional<RankRates> median_rates(const PointCeilings& ceilings) {
  std::vector<double> flop_per_s, read_bytes_per_s;
  for (const RankCeilings& rank : ceilings.ranks) {
    if (rank.flop_per_s) flop_per_s.push_back(*rank.flop_per_s);
    if (rank.read_bytes_per_s) read_bytes_per_s.push_back(*rank.read_bytes_per_s);
  }
  if (flop_per_s.empty() || read_bytes_per_s.empty()) return std::nullopt;
  return RankRates{.flop_per_s = nearest_rank(flop_per_s, 0.5),
                   .read_bytes_per_s = nearest_rank(read_bytes_per_s, 0.5)};
}

// The keys of "model", and what they are.
struct ModelKey {
  const char* name;
  std::optional<double> BreakdownModel::*value;
};
constexpr ModelKey kModelKeys[] = {{"weight_us", &BreakdownModel::weight_us},
                                   {"compute_us", &BreakdownModel::compute_us},
                                   {"skew_floor_us", &BreakdownModel::skew_floor_us},
                                   {"exchange_alpha_us", &BreakdownModel::alpha_us},
                                   {"exchange_row_us", &BreakdownModel::row_us}};

double mean_of(const std::vector<std::int64_t>& counts) {
  return static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})) /
         static_cast<double>(counts.size());
}

}  // namespace

BreakdownWork breakdown_work(const SweepPoint& point, const PointWorkload& workload,
                             const std::optional<PointCeilings>& ceilings,
                             std::vector<std::vector<FfnWork>> uniform_ffn) {
  const double rows = mean_of(workload.busiest_a_rows);
  const bool by_rank = point.exchange_unit == ExchangeUnit::rank;
  BreakdownWork work{
      .ffn = workload.ffn_of_routing,
      .uniform_ffn = std::move(uniform_ffn),
      .rates = std::nullopt,
      .exchange = std::nullopt,
      .critical_rows = rows,
      .critical_copies = by_rank ? mean_of(workload.busiest_d_copies) : rows,
      .mean_rows = static_cast<double>(workload.traffic.a_copies - workload.traffic.a_self_copies) /
                   point.num_routings() / point.ep_size,
      .row_bytes = workload.traffic.row_bytes,
      .layers = point.layers};
  if (!ceilings) return work;
  work.rates = median_rates(*ceilings);
  work.exchange = ceilings->exchange;
  return work;
}

Json breakdown_json(const std::optional<Breakdown>& breakdown) {
  if (!breakdown) return nullptr;
  Json parts = Json::object(), model = Json::object();
  for (std::size_t i = 0; i < kNumParts; ++i) {
    parts[std::string(kPartNames[i])] = breakdown->parts_us[i];
  }
  for (const ModelKey& key : kModelKeys) {
    model[key.name] = json_or_null(breakdown->model.*key.value);
  }
  model["exchange_mean_rows"] = breakdown->model.mean_rows;
  model["exchange_rows"] = breakdown->model.rows;
  model["exchange_dedup"] = breakdown->model.dedup;
  return {{"period_us", breakdown->period_us},
          {"parts_us", std::move(parts)},
          {"model", std::move(model)}};
}

std::optional<Breakdown> breakdown_of(const Json& record) {
  const auto period = find_number(record, "breakdown.period_us");
  if (!period) return std::nullopt;
  Breakdown breakdown{.period_us = *period, .parts_us = {}, .model = {}};
  for (std::size_t i = 0; i < kNumParts; ++i) {
    const auto part = find_number(record, "breakdown.parts_us." + std::string(kPartNames[i]));
    if (!part) return std::nullopt;
    breakdown.parts_us[i] = *part;
  }
  for (const ModelKey& key : kModelKeys) {
    breakdown.model.*key.value = find_number(record, std::string("breakdown.model.") + key.name);
  }
  breakdown.model.mean_rows = find_number(record, "breakdown.model.exchange_mean_rows").value_or(0);
  breakdown.model.rows = find_number(record, "breakdown.model.exchange_rows").value_or(0);
  breakdown.model.dedup = find_number(record, "breakdown.model.exchange_dedup").value_or(1);
  return breakdown;
}

std::string breakdown_formula() {
  return "p50 us per layer, parts add up to the chained p50 (period_us). router, permute, "
         "unpermute: median rank; count_exchange, dispatch, combine: transfer; ffn_typical: a rank "
         "with the mean rows, like the median rank otherwise; ffn_rows: what the slowest rank "
         "takes "
         "beyond that for its rows, by the slope of time over roofline time between ranks; uneven: "
         "what slowest ranks take beyond that in stages of their "
         "own although rows do not explain it; residual: period_us - all others, which are of the "
         "aligned pass. model: weight_us, compute_us: the mean rank's touched weights at the "
         "measured bandwidth and operations at the measured rate (median rank); skew_floor_us: "
         "ffn_rows expected of uniform routing; exchange_alpha_us, exchange_row_us: of one "
         "exchange by the measured line, and of one row; exchange_mean_rows, exchange_rows: rows "
         "by letter A that the mean rank, and the rank with most, sends or receives; "
         "exchange_dedup: copies sent / those";
}

}  // namespace epsweep
