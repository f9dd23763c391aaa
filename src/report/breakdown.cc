#include "report/breakdown.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/chain_shape.h"
#include "base/error.h"

namespace epsweep {
namespace {

constexpr double kUsPerS = 1e6;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Seconds at the measured rates; rows where there are none.
double roof_of(const FfnWork& work, const std::optional<RankRates>& rates) {
  if (!rates) return static_cast<double>(work.routed_rows);
  return ffn_times(work, *rates).seconds();
}

// [routings][ep_size], in what roof_of() gives.
using Roofs = std::vector<std::vector<double>>;

Roofs roofs_of(const std::vector<std::vector<FfnWork>>& work,
               const std::optional<RankRates>& rates) {
  Roofs roofs;
  for (const std::vector<FfnWork>& ranks : work) {
    std::vector<double>& row = roofs.emplace_back();
    for (const FfnWork& rank : ranks) row.push_back(roof_of(rank, rates));
  }
  return roofs;
}

// What the ranks of one group took for a stage of their own in one (iteration, layer).
struct GroupTimes {
  const std::vector<int>* rows = nullptr;
  std::vector<double> seconds;  // by row of the group
  std::size_t slowest = 0;

  double max_s() const { return seconds[slowest]; }
};

using Groups = std::vector<std::vector<int>>;  // rows of each

Groups groups_of(const TableRows& rows) {
  Groups groups(static_cast<std::size_t>(std::ranges::max(rows.group_of_row)) + 1);
  for (std::size_t row = 0; row < rows.group_of_row.size(); ++row) {
    groups[static_cast<std::size_t>(rows.group_of_row[row])].push_back(static_cast<int>(row));
  }
  return groups;
}

// Of the group whose slowest rank is slowest.
GroupTimes slowest_group(const TimingTable& table, const Groups& groups, int iteration, int layer,
                         Stage stage) {
  GroupTimes slowest;
  for (const std::vector<int>& rows : groups) {
    if (rows.empty()) continue;
    GroupTimes times{.rows = &rows, .seconds = {}, .slowest = 0};
    for (const int row : rows) {
      times.seconds.push_back(table.wall_s(row, iteration, layer, stage));
      if (times.seconds.back() > times.max_s()) times.slowest = times.seconds.size() - 1;
    }
    if (slowest.rows == nullptr || times.max_s() > slowest.max_s()) slowest = std::move(times);
  }
  return slowest;
}

// A rank's roof in one routing, and its median time over the iterations that had it.
struct TimedWork {
  double roof = 0, seconds = 0;
};

// By routing, of all rows.
std::vector<std::vector<TimedWork>> timed_work(const TimingTable& table,
                                               const std::vector<int>& ep_rank_of_row,
                                               const Roofs& roofs) {
  const int num_routings = static_cast<int>(roofs.size()), num_layers = table.num_layers();
  std::vector<std::vector<TimedWork>> by_routing(roofs.size());
  for (int row = 0; row < table.num_ranks(); ++row) {
    std::vector<std::vector<double>> samples(roofs.size());
    for (int i = 0; i < table.num_iterations(); ++i) {
      for (int l = 0; l < num_layers; ++l) {
        const int routing = routing_at(num_layers, num_routings, i, l);
        samples[static_cast<std::size_t>(routing)].push_back(
            table.wall_s(row, i, l, Stage::expert_ffn));
      }
    }
    const auto ep_rank = static_cast<std::size_t>(ep_rank_of_row.at(static_cast<std::size_t>(row)));
    for (std::size_t routing = 0; routing < roofs.size(); ++routing) {
      if (samples[routing].empty()) continue;
      by_routing[routing].push_back(
          {.roof = roofs[routing].at(ep_rank), .seconds = nearest_rank(samples[routing], 0.5)});
    }
  }
  return by_routing;
}

// Seconds by unit of roof; see break_down().
double slope_of(std::vector<std::vector<TimedWork>> by_routing, double least) {
  std::vector<double> slopes, ratios;
  for (std::vector<TimedWork>& ranks : by_routing) {
    std::ranges::sort(ranks, {}, &TimedWork::roof);
    for (const TimedWork& rank : ranks) {
      if (rank.roof > 0) ratios.push_back(rank.seconds / rank.roof);
    }
    const std::size_t half = (ranks.size() + 1) / 2;
    for (std::size_t i = 0; i + half < ranks.size(); ++i) {
      const TimedWork &low = ranks[i], &high = ranks[i + half];
      const double more = high.roof - low.roof;
      if (more > 1e-9 * high.roof) slopes.push_back((high.seconds - low.seconds) / more);
    }
  }
  if (ratios.empty()) return 0;
  const double most = nearest_rank(ratios, 0.5);
  if (slopes.empty() || most <= least) return most;
  return std::clamp(nearest_rank(slopes, 0.5), least, most);
}

// Of one stage, microseconds per layer.
struct StageParts {
  double typical_us = 0, rows_us = 0, uneven_us = 0;
};

struct StageSamples {
  std::vector<double> typical_s, rows_s, uneven_s;

  StageParts p50() const {
    return {.typical_us = nearest_rank(typical_s, 0.5) * kUsPerS,
            .rows_us = nearest_rank(rows_s, 0.5) * kUsPerS,
            .uneven_us = nearest_rank(uneven_s, 0.5) * kUsPerS};
  }
};

// parts_of(times, iteration, layer) gives {typical, rows} in seconds of one (iteration, layer).
template <typename PartsOf>
StageParts stage_parts(const TimingTable& table, const Groups& groups, Stage stage,
                       const PartsOf& parts_of) {
  StageSamples samples;
  const double layers = table.num_layers();
  for (int i = 0; i < table.num_iterations(); ++i) {
    double typical_s = 0, rows_s = 0, all_s = 0;
    for (int l = 0; l < table.num_layers(); ++l) {
      const GroupTimes times = slowest_group(table, groups, i, l, stage);
      const auto [typical, rows] = parts_of(times, i, l);
      typical_s += typical;
      rows_s += rows;
      all_s += times.max_s();
    }
    samples.typical_s.push_back(typical_s / layers);
    samples.rows_s.push_back(rows_s / layers);
    samples.uneven_s.push_back((all_s - typical_s - rows_s) / layers);
  }
  return samples.p50();
}

struct CellParts {
  double typical_s = 0, rows_s = 0;
};

StageParts ffn_parts(const TimingTable& table, const Groups& groups,
                     const std::vector<int>& ep_rank_of_row, const Roofs& roofs, double slope) {
  std::vector<double> mean_roofs;
  for (const std::vector<double>& ranks : roofs) mean_roofs.push_back(mean_of(ranks));
  return stage_parts(
      table, groups, Stage::expert_ffn, [&](const GroupTimes& times, int i, int l) -> CellParts {
        const auto routing = static_cast<std::size_t>(
            routing_at(table.num_layers(), static_cast<int>(roofs.size()), i, l));
        const auto rows_s_of = [&](std::size_t position) {
          const auto row = static_cast<std::size_t>((*times.rows)[position]);
          const auto ep_rank = static_cast<std::size_t>(ep_rank_of_row.at(row));
          return slope * (roofs[routing].at(ep_rank) - mean_roofs[routing]);
        };
        std::vector<double> at_mean_rows = times.seconds;
        for (std::size_t k = 0; k < at_mean_rows.size(); ++k) at_mean_rows[k] -= rows_s_of(k);
        const double typical_s = std::min(nearest_rank(at_mean_rows, 0.5), times.max_s());
        return {.typical_s = typical_s,
                .rows_s = std::clamp(rows_s_of(times.slowest), 0.0, times.max_s() - typical_s)};
      });
}

StageParts local_parts(const TimingTable& table, const Groups& groups, Stage stage) {
  return stage_parts(table, groups, stage, [](const GroupTimes& times, int, int) -> CellParts {
    return {.typical_s = nearest_rank(times.seconds, 0.5), .rows_s = 0};
  });
}

double skew_floor_s(const Roofs& uniform, double slope) {
  if (uniform.empty()) return 0;
  double sum = 0;
  for (const std::vector<double>& ranks : uniform) sum += std::ranges::max(ranks) - mean_of(ranks);
  return slope * sum / static_cast<double>(uniform.size());
}

BreakdownModel model_of(const BreakdownWork& work) {
  BreakdownModel model{.weight_us = std::nullopt,
                       .compute_us = std::nullopt,
                       .skew_floor_us = std::nullopt,
                       .alpha_us = std::nullopt,
                       .row_us = std::nullopt,
                       .mean_rows = work.mean_rows,
                       .rows = work.critical_rows,
                       .dedup = 1};
  if (work.critical_rows > 0) model.dedup = work.critical_copies / work.critical_rows;
  if (work.exchange) {
    model.alpha_us = work.exchange->alpha_s * kUsPerS;
    model.row_us = static_cast<double>(work.row_bytes) / work.exchange->beta_bytes_per_s * kUsPerS;
  }
  if (!work.rates) return model;
  double weight_s = 0, compute_s = 0, num_ranks = 0;
  for (const std::vector<FfnWork>& ranks : work.ffn) {
    for (const FfnWork& rank : ranks) {
      weight_s += static_cast<double>(rank.weight_bytes + rank.weight_scale_bytes) /
                  work.rates->read_bytes_per_s;
      compute_s += static_cast<double>(rank.flops) / work.rates->flop_per_s;
      ++num_ranks;
    }
  }
  model.weight_us = weight_s / num_ranks * kUsPerS;
  model.compute_us = compute_s / num_ranks * kUsPerS;
  return model;
}

}  // namespace

std::optional<Breakdown> break_down(const TimingTable& table, const TableRows& rows,
                                    const std::vector<int>& ep_rank_of_row,
                                    const PointSummary& summary, const BreakdownWork& work) {
  const std::optional<double> period_s = summary.period_p50_s();
  if (!period_s) return std::nullopt;
  EPS_EXPECT(ep_rank_of_row.size() == static_cast<std::size_t>(table.num_ranks()) &&
                 !work.ffn.empty() && work.ffn.size() % static_cast<std::size_t>(work.layers) == 0,
             "a breakdown of other ranks or layers than the table's");
  const Roofs roofs = roofs_of(work.ffn, work.rates);
  const double slope =
      slope_of(timed_work(table, ep_rank_of_row, roofs), work.rates.has_value() ? 1.0 : 0.0);
  const Groups groups = groups_of(rows);
  const StageParts ffn = ffn_parts(table, groups, ep_rank_of_row, roofs, slope);

  Breakdown result{.period_us = *period_s * kUsPerS, .parts_us = {}, .model = model_of(work)};
  result.at(LayerPart::ffn_typical) = ffn.typical_us;
  result.at(LayerPart::ffn_rows) = ffn.rows_us;
  result.at(LayerPart::uneven) = ffn.uneven_us;
  const auto put_local = [&](Stage stage, LayerPart part) {
    const StageParts local = local_parts(table, groups, stage);
    result.at(part) = local.typical_us;
    result.at(LayerPart::uneven) += local.uneven_us;
  };
  put_local(Stage::router, LayerPart::router);
  put_local(Stage::permute, LayerPart::permute);
  put_local(Stage::unpermute, LayerPart::unpermute);
  const auto put_exchange = [&](Stage stage, LayerPart part) {
    const auto& exchange = summary.exchange[static_cast<std::size_t>(stage)];
    result.at(part) = exchange->transfer_s.p50.value_or(0) * kUsPerS;
  };
  put_exchange(Stage::count_exchange, LayerPart::count_exchange);
  put_exchange(Stage::dispatch, LayerPart::dispatch);
  put_exchange(Stage::combine, LayerPart::combine);
  result.at(LayerPart::residual) =
      result.period_us - std::accumulate(result.parts_us.begin(), result.parts_us.end(), 0.0);
  if (!work.uniform_ffn.empty()) {
    result.model.skew_floor_us =
        std::min(skew_floor_s(roofs_of(work.uniform_ffn, work.rates), slope) * kUsPerS,
                 result.at(LayerPart::ffn_rows));
  }
  return result;
}

}  // namespace epsweep
