#include "report/summary.h"

#include <algorithm>
#include <limits>

namespace epsweep {
namespace {

// The stages, then the whole layer.
constexpr std::size_t kLayer = kNumStages;
constexpr std::size_t kNumParts = kNumStages + 1;
constexpr auto kFfn = static_cast<std::size_t>(Stage::expert_ffn);

struct PartTime {
  double wall_s = 0, cpu_s = 0;
};
using PartTimes = std::array<PartTime, kNumParts>;

// Over the ranks, inside one (iteration, layer).
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
using PartExtremes = std::array<Extremes, kNumParts>;

struct Pass {
  std::vector<PartExtremes> extremes;  // [iteration][layer]
  std::array<double, kNumParts> max_of_means_s = {};
  std::vector<double> layer_p50_s_of_rank, ffn_p50_s_of_rank;
};

PartTimes times_of(const TimingTable& table, int rank, int iteration, int layer) {
  PartTimes times;
  for (std::size_t s = 0; s < kLayer; ++s) {
    const auto stage = static_cast<Stage>(s);
    times[s] = {table.wall_s(rank, iteration, layer, stage),
                table.at(rank, iteration, layer, stage, Measure::cpu_s)};
    times[kLayer].cpu_s += times[s].cpu_s;
  }
  times[kLayer].wall_s = table.layer_wall_s(rank, iteration, layer);
  return times;
}

void add_rank(const TimingTable& table, int rank, Pass& pass) {
  const double num_layers = table.num_layers();
  std::array<double, kNumParts> sums = {};
  std::vector<double> layer_samples, ffn_samples;
  auto extremes = pass.extremes.begin();
  for (int iteration = 0; iteration < table.num_iterations(); ++iteration) {
    double layer_sum_s = 0, ffn_sum_s = 0;
    for (int layer = 0; layer < table.num_layers(); ++layer, ++extremes) {
      const PartTimes times = times_of(table, rank, iteration, layer);
      for (std::size_t part = 0; part < kNumParts; ++part) {
        (*extremes)[part].add(rank, times[part]);
        sums[part] += times[part].wall_s;
      }
      layer_sum_s += times[kLayer].wall_s;
      ffn_sum_s += times[kFfn].wall_s;
    }
    layer_samples.push_back(layer_sum_s / num_layers);
    ffn_samples.push_back(ffn_sum_s / num_layers);
  }
  for (std::size_t part = 0; part < kNumParts; ++part) {
    const double mean_s = sums[part] / (table.num_iterations() * num_layers);
    pass.max_of_means_s[part] = std::max(pass.max_of_means_s[part], mean_s);
  }
  pass.layer_p50_s_of_rank.push_back(nearest_rank(layer_samples, 0.5));
  pass.ffn_p50_s_of_rank.push_back(nearest_rank(ffn_samples, 0.5));
}

// One pass in memory order: the table of a large world is far larger than any cache.
Pass pass_over(const TimingTable& table) {
  Pass pass;
  pass.extremes.resize(static_cast<std::size_t>(table.num_iterations()) *
                       static_cast<std::size_t>(table.num_layers()));
  for (int rank = 0; rank < table.num_ranks(); ++rank) add_rank(table, rank, pass);
  return pass;
}

StageSummary summarize_part(const TimingTable& table, const Pass& pass, std::size_t part) {
  const double num_layers = table.num_layers();
  std::vector<double> slowest, fastest, cpu;
  std::vector<std::int64_t> times_slowest(static_cast<std::size_t>(table.num_ranks()), 0);
  auto extremes = pass.extremes.begin();
  for (int iteration = 0; iteration < table.num_iterations(); ++iteration) {
    Extremes sum{.max_s = 0, .min_s = 0};
    for (int layer = 0; layer < table.num_layers(); ++layer, ++extremes) {
      const Extremes& cell = (*extremes)[part];
      sum.max_s += cell.max_s;
      sum.min_s += cell.min_s;
      sum.cpu_of_max_s += cell.cpu_of_max_s;
      ++times_slowest[static_cast<std::size_t>(cell.slowest_rank)];
    }
    slowest.push_back(sum.max_s / num_layers);
    fastest.push_back(sum.min_s / num_layers);
    cpu.push_back(sum.cpu_of_max_s / num_layers);
  }
  const auto most_often = std::max_element(times_slowest.begin(), times_slowest.end());
  StageSummary summary;
  summary.slowest_s = summarize_times(slowest);
  summary.slowest_rank = static_cast<int>(most_often - times_slowest.begin());
  summary.slowest_rank_share =
      static_cast<double>(*most_often) / static_cast<double>(pass.extremes.size());
  summary.fastest_rank_p50_s = nearest_rank(fastest, 0.5);
  summary.slowest_rank_cpu_p50_s = nearest_rank(cpu, 0.5);
  summary.first_sample_s = slowest.front();
  summary.max_of_means_s = pass.max_of_means_s[part];
  return summary;
}

}  // namespace

PointSummary summarize(const TimingTable& table) {
  Pass pass = pass_over(table);
  PointSummary summary;
  for (std::size_t s = 0; s < kLayer; ++s) summary.stages[s] = summarize_part(table, pass, s);
  summary.layer = summarize_part(table, pass, kLayer);
  summary.layer_p50_s_of_rank = std::move(pass.layer_p50_s_of_rank);
  summary.ffn_p50_s_of_rank = std::move(pass.ffn_p50_s_of_rank);
  return summary;
}

}  // namespace epsweep
