#include "report/summary.h"

#include <algorithm>
#include <limits>

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
  Part layer;
  std::vector<double> layer_p50_s_of_rank, ffn_p50_s_of_rank;
};

bool is_exchange(Stage stage) {
  return stage == Stage::count_exchange || stage == Stage::dispatch || stage == Stage::combine;
}

void add_rank(const TimingTable& table, int rank, Pass& pass) {
  const double num_layers = table.num_layers();
  std::vector<double> layer_samples, ffn_samples;
  std::size_t cell = 0;
  for (int iteration = 0; iteration < table.num_iterations(); ++iteration) {
    PartTime whole{.wall_s = table.iteration_wall_s(rank, iteration) / num_layers, .cpu_s = 0};
    double ffn_sum_s = 0;
    for (int layer = 0; layer < table.num_layers(); ++layer, ++cell) {
      for (std::size_t s = 0; s < pass.stages.size(); ++s) {
        const auto stage = static_cast<Stage>(s);
        const PartTime time{table.wall_s(rank, iteration, layer, stage),
                            table.at(rank, iteration, layer, stage, Measure::cpu_s)};
        pass.stages[s].add(cell, rank, time);
        if (!is_exchange(stage)) whole.cpu_s += time.cpu_s / num_layers;
        if (s == kFfn) ffn_sum_s += time.wall_s;
      }
    }
    pass.layer.add(static_cast<std::size_t>(iteration), rank, whole);
    layer_samples.push_back(whole.wall_s);
    ffn_samples.push_back(ffn_sum_s / num_layers);
  }
  for (Part& stage : pass.stages) stage.finish_rank();
  pass.layer.finish_rank();
  pass.layer_p50_s_of_rank.push_back(nearest_rank(layer_samples, 0.5));
  pass.ffn_p50_s_of_rank.push_back(nearest_rank(ffn_samples, 0.5));
}

// One pass in memory order: the table of a large world is far larger than any cache.
Pass pass_over(const TimingTable& table) {
  Pass pass{
      .stages = std::vector<Part>(kNumStages, Part(table.num_iterations(), table.num_layers())),
      .layer = Part(table.num_iterations(), 1),
      .layer_p50_s_of_rank = {},
      .ffn_p50_s_of_rank = {}};
  for (int rank = 0; rank < table.num_ranks(); ++rank) add_rank(table, rank, pass);
  return pass;
}

StageSummary summarize_part(const Part& part, int num_ranks) {
  const auto num_cells = static_cast<double>(part.cells_per_iteration);
  std::vector<double> slowest, fastest, cpu;
  std::vector<std::int64_t> times_slowest(static_cast<std::size_t>(num_ranks), 0);
  for (std::size_t begin = 0; begin < part.cells.size(); begin += part.cells_per_iteration) {
    Extremes sum{.max_s = 0, .min_s = 0};
    for (std::size_t i = begin; i < begin + part.cells_per_iteration; ++i) {
      const Extremes& cell = part.cells[i];
      sum.max_s += cell.max_s;
      sum.min_s += cell.min_s;
      sum.cpu_of_max_s += cell.cpu_of_max_s;
      ++times_slowest[static_cast<std::size_t>(cell.slowest_rank)];
    }
    slowest.push_back(sum.max_s / num_cells);
    fastest.push_back(sum.min_s / num_cells);
    cpu.push_back(sum.cpu_of_max_s / num_cells);
  }
  const auto most_often = std::max_element(times_slowest.begin(), times_slowest.end());
  StageSummary summary;
  summary.slowest_s = summarize_times(slowest);
  summary.slowest_rank = static_cast<int>(most_often - times_slowest.begin());
  summary.slowest_rank_share =
      static_cast<double>(*most_often) / static_cast<double>(part.cells.size());
  summary.fastest_rank_p50_s = nearest_rank(fastest, 0.5);
  summary.slowest_rank_cpu_p50_s = nearest_rank(cpu, 0.5);
  summary.first_sample_s = slowest.front();
  summary.max_of_means_s = part.max_of_means_s;
  return summary;
}

}  // namespace

PointSummary summarize(const TimingTable& table) {
  Pass pass = pass_over(table);
  PointSummary summary;
  for (std::size_t s = 0; s < pass.stages.size(); ++s) {
    summary.stages[s] = summarize_part(pass.stages[s], table.num_ranks());
  }
  summary.layer = summarize_part(pass.layer, table.num_ranks());
  summary.layer_p50_s_of_rank = std::move(pass.layer_p50_s_of_rank);
  summary.ffn_p50_s_of_rank = std::move(pass.ffn_p50_s_of_rank);
  return summary;
}

}  // namespace epsweep
