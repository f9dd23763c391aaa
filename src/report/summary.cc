#include "report/summary.h"

#include <algorithm>
#include <limits>

#include "base/chain_shape.h"

namespace epsweep {
namespace {

constexpr auto kFfn = static_cast<std::size_t>(Stage::expert_ffn);

struct PartTime {
  double wall_s = 0, cpu_s = 0;
};

// Over the ranks, inside one cell.
struct Extremes {
  double max_s = -std::numeric_limits<double>::infinity();
  double min_s = std::numeric_limits<double>::infinity();
  double cpu_of_max_s = 0;
  int slowest_rank = 0;  // the first one on a tie

  void add(int rank, const PartTime& time) {
    min_s = std::min(min_s, time.wall_s);
    if (time.wall_s <= max_s) return;
    max_s = time.wall_s;
    cpu_of_max_s = time.cpu_s;
    slowest_rank = rank;
  }
};

// A stage has a cell per (iteration, layer); the whole layer has one per iteration.
struct Part {
  std::size_t cells_per_iteration = 1;
  std::vector<Extremes> cells;  // [iteration][cells_per_iteration]
  double sum_s = 0;             // of the rank that is being added
  double max_of_means_s = 0;

  Part(int num_iterations, int num_cells)
      : cells_per_iteration(static_cast<std::size_t>(num_cells)) {
    cells.resize(static_cast<std::size_t>(num_iterations) * cells_per_iteration);
  }
  void add(std::size_t cell, int rank, const PartTime& time) {
    cells[cell].add(rank, time);
    sum_s += time.wall_s;
  }
  void finish_rank() {
    max_of_means_s = std::max(max_of_means_s, sum_s / static_cast<double>(cells.size()));
    sum_s = 0;
  }
};

struct Pass {
  std::vector<Part> stages;
  Part all;  // cells of an iteration: a rank's own stages, added up
  std::vector<double> all_p50_s_of_rank, ffn_p50_s_of_rank;
};

void add_rank(const TimingTable& table, int rank, Pass& pass) {
  const double num_layers = table.num_layers();
  std::vector<double> all_samples, ffn_samples;
  std::size_t cell = 0;
  for (int iteration = 0; iteration < table.num_iterations(); ++iteration) {
    PartTime all;
    double ffn_sum_s = 0;
    for (int layer = 0; layer < table.num_layers(); ++layer, ++cell) {
      for (std::size_t s = 0; s < pass.stages.size(); ++s) {
        const auto stage = static_cast<Stage>(s);
        const PartTime time{table.wall_s(rank, iteration, layer, stage),
                            table.at(rank, iteration, layer, stage, Measure::cpu_s)};
        pass.stages[s].add(cell, rank, time);
        all.wall_s += time.wall_s / num_layers;
        if (!is_exchange(stage)) all.cpu_s += time.cpu_s / num_layers;
        if (s == kFfn) ffn_sum_s += time.wall_s;
      }
    }
    pass.all.add(static_cast<std::size_t>(iteration), rank, all);
    all_samples.push_back(all.wall_s);
    ffn_samples.push_back(ffn_sum_s / num_layers);
  }
  for (Part& stage : pass.stages) stage.finish_rank();
  pass.all.finish_rank();
  pass.all_p50_s_of_rank.push_back(nearest_rank(all_samples, 0.5));
  pass.ffn_p50_s_of_rank.push_back(nearest_rank(ffn_samples, 0.5));
}

// One pass in memory order: the table of a large world is far larger than any cache.
Pass pass_over(const TimingTable& table) {
  Pass pass{
      .stages = std::vector<Part>(kNumStages, Part(table.num_iterations(), table.num_layers())),
      .all = Part(table.num_iterations(), 1),
      .all_p50_s_of_rank = {},
      .ffn_p50_s_of_rank = {}};
  for (int rank = 0; rank < table.num_ranks(); ++rank) add_rank(table, rank, pass);
  return pass;
}

// Means over the cells of an iteration.
struct Samples {
  std::vector<double> slowest_s, fastest_s, cpu_s;
};

Samples samples_of(const Part& part) {
  const auto num_cells = static_cast<double>(part.cells_per_iteration);
  Samples samples;
  for (std::size_t begin = 0; begin < part.cells.size(); begin += part.cells_per_iteration) {
    Extremes sum{.max_s = 0, .min_s = 0};
    for (std::size_t i = begin; i < begin + part.cells_per_iteration; ++i) {
      sum.max_s += part.cells[i].max_s;
      sum.min_s += part.cells[i].min_s;
      sum.cpu_of_max_s += part.cells[i].cpu_of_max_s;
    }
    samples.slowest_s.push_back(sum.max_s / num_cells);
    samples.fastest_s.push_back(sum.min_s / num_cells);
    samples.cpu_s.push_back(sum.cpu_of_max_s / num_cells);
  }
  return samples;
}

StageSummary summarize_part(const Part& part, const Samples& samples, int num_ranks) {
  std::vector<std::int64_t> times_slowest(static_cast<std::size_t>(num_ranks), 0);
  for (const Extremes& cell : part.cells) {
    ++times_slowest[static_cast<std::size_t>(cell.slowest_rank)];
  }
  const auto most_often = std::ranges::max_element(times_slowest);
  StageSummary summary;
  summary.samples_s = samples.slowest_s;
  summary.slowest_s = summarize_times(samples.slowest_s);
  summary.slowest_rank = static_cast<int>(most_often - times_slowest.begin());
  summary.slowest_rank_share =
      static_cast<double>(*most_often) / static_cast<double>(part.cells.size());
  summary.fastest_rank_p50_s = nearest_rank(samples.fastest_s, 0.5);
  summary.slowest_rank_cpu_p50_s = nearest_rank(samples.cpu_s, 0.5);
  summary.first_sample_s = samples.slowest_s.front();
  summary.max_of_means_s = part.max_of_means_s;
  return summary;
}

// Time by layer of a rank's positions [begin, end) of a chain.
double period_s(const ChainTable& table, int rank, int chain, int begin, int end) {
  return (table.end_s(rank, chain, end - 1) - table.begin_s(rank, chain, begin)) / (end - begin);
}

// Slowest rank of each half of what counts.
std::optional<double> convergence_of(const ChainTable& table, int fill) {
  const int counted = table.chain_layers() - fill, middle = fill + counted / 2;
  if (counted < 2) return std::nullopt;
  std::vector<double> ratios;
  for (int chain = 0; chain < table.num_chains(); ++chain) {
    double early_s = 0, late_s = 0;
    for (int rank = 0; rank < table.num_ranks(); ++rank) {
      early_s = std::max(early_s, period_s(table, rank, chain, fill, middle));
      late_s = std::max(late_s, period_s(table, rank, chain, middle, table.chain_layers()));
    }
    if (early_s > 0) ratios.push_back(late_s / early_s);
  }
  if (ratios.empty()) return std::nullopt;
  return nearest_rank(ratios, 0.5);
}

}  // namespace

PointSummary summarize(const TimingTable& table, const TableRows& rows, PassFactsOfRanks facts) {
  Pass pass = pass_over(table);
  PointSummary summary;
  Samples all = samples_of(pass.all);
  std::ranges::fill(all.slowest_s, 0);
  for (std::size_t s = 0; s < pass.stages.size(); ++s) {
    const Samples samples = samples_of(pass.stages[s]);
    for (std::size_t i = 0; i < samples.slowest_s.size(); ++i) {
      all.slowest_s[i] += samples.slowest_s[i];
    }
    summary.stages[s] = summarize_part(pass.stages[s], samples, table.num_ranks());
    const auto stage = static_cast<Stage>(s);
    if (is_exchange(stage)) summary.exchange[s] = summarize_exchange(table, stage, rows);
  }
  summary.all_stages = summarize_part(pass.all, all, table.num_ranks());
  summary.pass = summarize_pass(std::move(facts), summary.all_stages.samples_s);
  summary.order_bound_s = rows.order_bound_s;
  summary.all_stages_p50_s_of_rank = std::move(pass.all_p50_s_of_rank);
  summary.ffn_p50_s_of_rank = std::move(pass.ffn_p50_s_of_rank);
  return summary;
}

std::optional<double> PointSummary::period_s(Percentile percentile) const {
  if (!chain.has_value()) return std::nullopt;
  const TimeSummary& times = chain->layer.slowest_s;
  switch (percentile) {
    case Percentile::p50:
      return times.p50;
    case Percentile::p90:
      return times.p90;
    case Percentile::p99:
      break;
  }
  return times.p99;
}

ChainSummary summarize_chain(const ChainTable& table, PassFactsOfRanks facts) {
  ChainSummary summary;
  summary.chain_layers = table.chain_layers();
  summary.fill_layers = fill_layers_of(table.chain_layers());
  Part layer(table.num_chains(), 1);
  for (int rank = 0; rank < table.num_ranks(); ++rank) {
    std::vector<double> own;
    for (int chain = 0; chain < table.num_chains(); ++chain) {
      own.push_back(period_s(table, rank, chain, summary.fill_layers, summary.chain_layers));
      layer.add(static_cast<std::size_t>(chain), rank, {.wall_s = own.back(), .cpu_s = 0});
    }
    layer.finish_rank();
    summary.layer_p50_s_of_rank.push_back(nearest_rank(own, 0.5));
  }
  summary.layer = summarize_part(layer, samples_of(layer), table.num_ranks());
  summary.pass = summarize_pass(std::move(facts), summary.layer.samples_s);
  summary.convergence = convergence_of(table, summary.fill_layers);
  return summary;
}

}  // namespace epsweep
