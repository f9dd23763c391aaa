// How long rank 0 takes from the gathered tables of a large launch to its record, and the memory
// that needs: summary_bench [ranks] [ep_size] [iterations] [layers].
#include <cstdio>
#include <cstdlib>

#include "base/host_probe.h"
#include "report/point_record.h"
#include "sim/simulated_passes.h"

namespace {

using namespace epsweep;

DeclaredTimes launch_of(int num_ranks, int ep_size, int num_layers) {
  DeclaredTimes times;
  times.num_layers = times.num_routings = num_layers;
  for (int rank = 0; rank < num_ranks; ++rank) {
    times.world_rank_of_row.push_back(rank);
    times.group_of_row.push_back(rank / ep_size);
  }
  times.own_s.assign(static_cast<std::size_t>(num_layers) * times.group_of_row.size() * kNumStages,
                     50e-6);
  return times;
}

PointRecordInput input_of(int num_ranks, int ep_size, int num_layers) {
  PointRecordInput input;
  input.point.model.name = "bench";
  input.point.model.num_experts = ep_size;
  input.point.model.top_k = 1;
  input.point.ep_size = ep_size;
  input.point.layers = num_layers;
  input.point.concurrency = {ConcurrencyMode::fixed_global, ep_size, {}};
  input.point.routing.distribution = "uniform";
  input.state = PointState::simulated;
  input.world_size = num_ranks;
  input.layout = group_layout(num_ranks, ep_size, Mapping::packed, Groups::fill);
  const std::vector<std::int64_t> rows(static_cast<std::size_t>(ep_size), 1);
  input.workload = PointWorkload{};
  input.workload->rows_per_expert.assign(static_cast<std::size_t>(num_layers), rows);
  input.workload->rows_per_rank = input.workload->rows_per_expert;
  input.check = CheckResult{};
  input.check->verdict = CheckVerdict::not_run;
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  const int num_ranks = argument(1, 1024), ep_size = argument(2, 8);
  const int num_iterations = argument(3, 200), num_layers = argument(4, 8);
  const DeclaredTimes launch = launch_of(num_ranks, ep_size, num_layers);
  SimConditions conditions;
  conditions.noise = {.relative = 0.02, .run = 0, .seed = 1};
  const double begin_s = monotonic_s();
  const TimingTable aligned = simulate_aligned(launch, conditions, num_iterations);
  const ChainTable chained = simulate_chained(launch, conditions, num_iterations);
  const double simulated_s = monotonic_s();
  PointRecordInput input = input_of(num_ranks, ep_size, num_layers);
  input.timings = summarize(aligned, {.group_of_row = launch.group_of_row, .order_bound_s = 0});
  input.timings->chain = summarize_chain(chained);
  const double summarised_s = monotonic_s();
  BreakdownWork work{.layers = num_layers};
  work.ffn.assign(static_cast<std::size_t>(num_layers),
                  std::vector<FfnWork>(static_cast<std::size_t>(ep_size), {.routed_rows = 1}));
  input.breakdown = break_down(aligned, {.group_of_row = launch.group_of_row, .order_bound_s = 0},
                               ep_ranks_of_rows(input.layout), *input.timings, work);
  const double broken_down_s = monotonic_s();
  const std::size_t bytes = to_json_line(make_point_record(input)).size();
  const double recorded_s = monotonic_s();
  std::printf(
      "%d ranks, EP%d, %d iterations, %d layers: simulate %.3f s, summary %.3f s, "
      "breakdown %.3f s, record %.3f s (%zu bytes), peak %.2f GiB\n",
      num_ranks, ep_size, num_iterations, num_layers, simulated_s - begin_s,
      summarised_s - simulated_s, broken_down_s - summarised_s, recorded_s - broken_down_s, bytes,
      static_cast<double>(peak_resident_bytes()) / 0x1p30);
}
