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
  return std::max(
      static_cast<double>(work.flops) / rates->flop_per_s,
      static_cast<double>(work.weight_bytes + work.weight_scale_bytes) / rates->read_bytes_per_s);
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

// What the ranks of a group took for a stage of their own in one (iteration, layer).
struct Cell {
  double sum_s = 0, max_s = 0;
  int slowest_row = -1;

  void add(int row, double seconds) {
    sum_s += seconds;
    if (slowest_row >= 0 && seconds <= max_s) return;
    max_s = seconds;
    slowest_row = row;
  }
};

class Cells {
 public:
  Cells(const TimingTable& table, const TableRows& rows, Stage stage)
      : num_groups_(static_cast<std::size_t>(std::ranges::max(rows.group_of_row)) + 1),
        ranks_in_group_(num_groups_, 0),
        num_layers_(table.num_layers()),
        cells_(static_cast<std::size_t>(table.num_iterations() * table.num_layers()) *
               num_groups_) {
    for (int row = 0; row < table.num_ranks(); ++row) {
      const auto group = static_cast<std::size_t>(rows.group_of_row[static_cast<std::size_t>(row)]);
      ++ranks_in_group_[group];
      for (int i = 0; i < table.num_iterations(); ++i) {
        for (int l = 0; l < num_layers_; ++l) {
          cells_[first_of(i, l) + group].add(row, table.wall_s(row, i, l, stage));
        }
      }
    }
  }

  // Of the group whose slowest rank is slowest.
  struct Slowest {
    double mean_s = 0, excess_s = 0;
    int row = 0;
  };
  Slowest at(int iteration, int layer) const {
    const std::size_t first = first_of(iteration, layer);
    std::size_t group = 0;
    for (std::size_t g = 1; g < num_groups_; ++g) {
      if (cells_[first + g].max_s > cells_[first + group].max_s) group = g;
    }
    const Cell& cell = cells_[first + group];
    const double mean_s = cell.sum_s / ranks_in_group_[group];
    return {.mean_s = mean_s, .excess_s = cell.max_s - mean_s, .row = cell.slowest_row};
  }

 private:
  std::size_t first_of(int iteration, int layer) const {
    return static_cast<std::size_t>(iteration * num_layers_ + layer) * num_groups_;
  }
  std::size_t num_groups_;
  std::vector<int> ranks_in_group_;
  int num_layers_;
  std::vector<Cell> cells_;
};

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

// Means over layers, of each iteration.
struct FfnSamples {
  std::vector<double> mean_s, rows_s, uneven_s;
};

FfnSamples ffn_samples(const TimingTable& table, const TableRows& rows,
                       const std::vector<int>& ep_rank_of_row, const Roofs& roofs, double slope) {
  const Cells cells(table, rows, Stage::expert_ffn);
  std::vector<double> mean_roofs;
  for (const std::vector<double>& ranks : roofs) mean_roofs.push_back(mean_of(ranks));
  FfnSamples samples;
  for (int i = 0; i < table.num_iterations(); ++i) {
    double mean_s = 0, rows_s = 0, excess_s = 0;
    for (int l = 0; l < table.num_layers(); ++l) {
      const Cells::Slowest slowest = cells.at(i, l);
      const auto routing = static_cast<std::size_t>(
          routing_at(table.num_layers(), static_cast<int>(roofs.size()), i, l));
      const auto ep_rank =
          static_cast<std::size_t>(ep_rank_of_row.at(static_cast<std::size_t>(slowest.row)));
      const double explained_s = slope * (roofs[routing].at(ep_rank) - mean_roofs[routing]);
      mean_s += slowest.mean_s;
      excess_s += slowest.excess_s;
      rows_s += std::clamp(explained_s, 0.0, slowest.excess_s);
    }
    const double layers = table.num_layers();
    samples.mean_s.push_back(mean_s / layers);
    samples.rows_s.push_back(rows_s / layers);
    samples.uneven_s.push_back((excess_s - rows_s) / layers);
  }
  return samples;
}

struct LocalStage {
  double mean_us = 0, uneven_us = 0;
};

LocalStage local_stage(const TimingTable& table, const TableRows& rows, Stage stage) {
  const Cells cells(table, rows, stage);
  std::vector<double> means_s, excesses_s;
  for (int i = 0; i < table.num_iterations(); ++i) {
    double mean_s = 0, excess_s = 0;
    for (int l = 0; l < table.num_layers(); ++l) {
      const Cells::Slowest slowest = cells.at(i, l);
      mean_s += slowest.mean_s;
      excess_s += slowest.excess_s;
    }
    means_s.push_back(mean_s / table.num_layers());
    excesses_s.push_back(excess_s / table.num_layers());
  }
  return {.mean_us = nearest_rank(means_s, 0.5) * kUsPerS,
          .uneven_us = nearest_rank(excesses_s, 0.5) * kUsPerS};
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
  const FfnSamples ffn = ffn_samples(table, rows, ep_rank_of_row, roofs, slope);

  Breakdown result{.period_us = *period_s * kUsPerS, .parts_us = {}, .model = model_of(work)};
  result.at(LayerPart::ffn_mean) = nearest_rank(ffn.mean_s, 0.5) * kUsPerS;
  result.at(LayerPart::ffn_rows) = nearest_rank(ffn.rows_s, 0.5) * kUsPerS;
  result.at(LayerPart::uneven) = nearest_rank(ffn.uneven_s, 0.5) * kUsPerS;
  const auto put_local = [&](Stage stage, LayerPart part) {
    const LocalStage local = local_stage(table, rows, stage);
    result.at(part) = local.mean_us;
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
