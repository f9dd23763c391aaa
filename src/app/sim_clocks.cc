#include "app/sim_clocks.h"

#include <algorithm>

namespace epsweep {
namespace {

bool is_true(const RankClock& clock) {
  return clock.source == ClockSource::host;
}

double alpha_s(const SweepPoint& point, int a, int b) {
  const SimCosts costs = point.sim != nullptr ? *point.sim : SimCosts{};
  const bool inside =
      !point.topology.declared() || point.topology.domain_of(a) == point.topology.domain_of(b);
  return (inside ? costs.intra : costs.inter).alpha_us * 1e-6;
}

template <typename Table>
std::vector<double> moved(const Table& table, std::size_t stride,
                          const std::vector<AlignedClock>& clocks) {
  std::vector<double> values(table.values().begin(), table.values().end());
  put_on_common_axis(clocks, stride, values);
  return values;
}

}  // namespace

std::vector<RankClock> sim_clocks(const std::vector<Fault>& faults,
                                  const std::vector<int>& world_ranks) {
  std::vector<RankClock> clocks;
  for (const int rank : world_ranks) {
    clocks.push_back(clock_with_faults(faults, rank));
    clocks.back().origin_s = 0;
  }
  if (std::ranges::all_of(clocks, is_true)) clocks.clear();
  return clocks;
}

std::vector<AlignedClock> align_sim_clocks(const SweepPoint& point,
                                           const std::vector<int>& world_ranks,
                                           const std::vector<RankClock>& clocks, double length_s) {
  std::vector<AlignedClock> aligned(world_ranks.size());
  for (std::size_t row = 0; row < clocks.size(); ++row) {
    if (row == 0 || (is_true(clocks[row]) && is_true(clocks[0]))) continue;
    const auto asked_at = [&](double true_s) {
      return ClockAlignment{.own_s = clocks[row].at(true_s),
                            .offset_s = clocks[0].at(true_s) - clocks[row].at(true_s),
                            .bound_s = alpha_s(point, world_ranks[0], world_ranks[row])};
    };
    aligned[row] = {.domain = static_cast<int>(row),
                    .map = clock_map(asked_at(0), asked_at(length_s))};
  }
  return aligned;
}

TimingTable on_common_axis(const TimingTable& table, const std::vector<AlignedClock>& clocks) {
  return {table.num_ranks(), table.num_iterations(), table.num_layers(),
          moved(table, kNumMeasures, clocks)};
}

ChainTable on_common_axis(const ChainTable& table, const std::vector<AlignedClock>& clocks) {
  return {table.num_ranks(), table.num_chains(), table.chain_layers(), moved(table, 2, clocks)};
}

}  // namespace epsweep
